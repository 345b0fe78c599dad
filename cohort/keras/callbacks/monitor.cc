#include "cohort/keras/callbacks/monitor.h"

#include <cmath>
#include <limits>
#include <string_view>
#include <utility>

#include "cohort/core/error.h"
#include "cohort/core/observe/logging.h"
#include "cohort/core/text.h"

namespace cohort::internal {
namespace {

// "auc" of "auc_1": a second metric of one name gets a number.
std::string_view without_number(std::string_view name) {
  const size_t end = name.find_last_not_of("0123456789");
  const bool is_numbered = end != name.npos && end + 1 < name.size() && name[end] == '_';
  return is_numbered ? name.substr(0, end) : name;
}

bool is_better_larger(std::string_view name) {
  name = without_number(name);
  return name.ends_with("acc") || name.ends_with("accuracy") || name.ends_with("auc");
}

}  // namespace

Monitor::Monitor(const char* callback, std::string name, const std::string& mode, double min_delta)
    : callback_(callback), name_(std::move(name)), min_delta_(std::abs(min_delta)) {
  if (mode != "min" && mode != "max" && mode != "auto") {
    throw InvalidArgumentError(
        str(callback, ": mode is ", quoted(mode), "; it is 'min', 'max' or 'auto'"));
  }
  if (name_.empty()) throw InvalidArgumentError(str(callback, ": monitor is empty"));
  larger_ = mode == "max" || (mode == "auto" && is_better_larger(name_));
}

LogRead Monitor::log_read(bool after_steps) const {
  return {.name = name_, .use = "monitor", .after_steps = after_steps};
}

std::optional<double> Monitor::read(const keras::Logs& logs) const {
  if (const auto value = logs.find(name_)) return value;
  std::string known;
  for (const auto& entry : logs) known += str(known.empty() ? "" : ", ", entry.first);
  log_warning(callback_, " does nothing: there is no ", quoted(name_),
              " to monitor among the logs; there are: ", known);
  return std::nullopt;
}

bool Monitor::is_better(double value, double other) const {
  return larger_ ? value - min_delta_ > other : value + min_delta_ < other;
}

double Monitor::worst() const {
  return (larger_ ? -1 : 1) * std::numeric_limits<double>::infinity();
}

}  // namespace cohort::internal
