#include "cohort/keras/callbacks/monitor.h"

#include <cmath>
#include <limits>
#include <utility>

#include "cohort/core/error.h"
#include "cohort/core/logging.h"
#include "cohort/core/text.h"

namespace cohort::internal {

Monitor::Monitor(const char* callback, std::string name, const std::string& mode, double min_delta)
    : callback_(callback), name_(std::move(name)), min_delta_(std::abs(min_delta)) {
  if (mode != "min" && mode != "max" && mode != "auto") {
    throw InvalidArgumentError(
        str(callback, ": mode is ", quoted(mode), "; it is 'min', 'max' or 'auto'"));
  }
  const auto has = [&](const char* part) { return name_.find(part) != std::string::npos; };
  larger_ = mode == "max" || (mode == "auto" && (has("acc") || has("auc")));
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
