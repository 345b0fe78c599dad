#include "cohort/core/libtorch_error.h"

#include <atomic>

#include "cohort/core/error.h"
#include "cohort/core/traceback.h"

namespace cohort {
namespace {

std::atomic<bool> filters{true};

}  // namespace

namespace debugging {

void enable_traceback_filtering() { filters = true; }
void disable_traceback_filtering() { filters = false; }
bool is_traceback_filtering_enabled() { return filters; }

}  // namespace debugging

namespace internal {

std::string libtorch_message(const c10::Error& error) {
  return filters ? error.what_without_backtrace() : error.what();
}

void throw_libtorch_error(const c10::Error& error, const std::string& context) {
  const std::string own = libtorch_message(error);
  const std::string message = context.empty() ? own : context + ": " + own;
  const std::string_view text = error.what_without_backtrace();
  if (text.find("allocate memory") != std::string_view::npos ||
      text.find("out of memory") != std::string_view::npos) {
    throw ResourceExhaustedError(message);
  }
  if (dynamic_cast<const c10::NotImplementedError*>(&error) != nullptr) {
    throw UnimplementedError(message);
  }
  throw InvalidArgumentError(message);
}

void throw_libtorch_error(const std::runtime_error& error, const std::string& context) {
  throw InvalidArgumentError(context + ": " + error.what());
}

}  // namespace internal
}  // namespace cohort
