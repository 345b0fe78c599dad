#include "cohort/core/libtorch_error.h"

#include <atomic>
#include <optional>
#include <string_view>

#include "cohort/core/error.h"
#include "cohort/core/traceback.h"

namespace cohort {
namespace {

std::atomic<bool> filters{true};

Code libtorch_code(const c10::Error& error) {
  const std::string_view text = error.what_without_backtrace();
  if (text.find("allocate memory") != std::string_view::npos ||
      text.find("out of memory") != std::string_view::npos) {
    return Code::kResourceExhausted;
  }
  const bool is_missing = dynamic_cast<const c10::NotImplementedError*>(&error) != nullptr;
  return is_missing ? Code::kUnimplemented : Code::kInvalidArgument;
}

}  // namespace

namespace debugging {

void enable_traceback_filtering() { filters = true; }
void disable_traceback_filtering() { filters = false; }
bool is_traceback_filtering_enabled() { return filters; }

}  // namespace debugging

namespace internal {

// error.cc calls it where it is linked: a program without libtorch meets none of its errors.
std::optional<ErrorRecord> record_libtorch_error(const std::exception& error);
std::optional<ErrorRecord> record_libtorch_error(const std::exception& error) {
  const auto* const of_libtorch = dynamic_cast<const c10::Error*>(&error);
  if (of_libtorch == nullptr) return std::nullopt;
  return ErrorRecord{libtorch_code(*of_libtorch), libtorch_message(*of_libtorch)};
}

std::string libtorch_message(const c10::Error& error) {
  if (!filters) return error.what();
  // An operation that a backend lacks lists those that have it, after an empty line: 30 lines.
  const std::string_view text = error.what_without_backtrace();
  std::string shown(text.substr(0, text.find("\n\n")));
  if (dynamic_cast<const c10::OutOfMemoryError*>(&error) != nullptr) {  // of a device
    shown +=
        "; smaller batches need less, of which an optimizer's gradient_accumulation_steps make as "
        "large ones; config::get_memory_info says how much is in use";
  }
  return shown;
}

void throw_libtorch_error(const c10::Error& error, const std::string& context) {
  const std::string own = libtorch_message(error);
  throw_error(libtorch_code(error), context.empty() ? own : context + ": " + own);
}

void throw_libtorch_error(const std::runtime_error& error, const std::string& context) {
  throw InvalidArgumentError(context + ": " + error.what());
}

}  // namespace internal
}  // namespace cohort
