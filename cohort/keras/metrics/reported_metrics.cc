#include "cohort/keras/metrics/reported_metrics.h"

#include <set>
#include <utility>

#include "cohort/core/error.h"
#include "cohort/core/text.h"
#include "cohort/train/objects/checkpoint_restore.h"

namespace cohort::internal {

void check_log_name(const std::string& name, const std::string& who) {
  if (name == "loss") {
    throw InvalidArgumentError(
        str(who, " the name 'loss', under which the logs have the loss itself; give another one"));
  }
  check_is_of_training(name, who);
}

void check_is_of_training(const std::string& log_name, const std::string& who) {
  if (!log_name.starts_with("val_")) return;
  throw InvalidArgumentError(
      str(who, " the name ", quoted(log_name),
          ", but the logs have what begins with 'val_' for numbers of the validation; give "
          "another one"));
}

void check_is_scalar(const std::string& log_name, const Tensor& result) {
  if (result.numel() == 1) return;
  throw InvalidArgumentError(str("metric ", quoted(log_name), " has the result ", describe(result),
                                 "; the logs take scalars: use one metric for each of them"));
}

void ReportedMetrics::set(std::vector<NamedMetric> metrics) {
  std::set<std::string> names;
  for (NamedMetric& one : metrics) {
    const std::string name = one.log_name;
    for (int number = 1; !names.insert(one.log_name).second; ++number) {
      one.log_name = str(name, "_", number);
    }
  }
  metrics_ = std::move(metrics);
}

void ReportedMetrics::appeared(const std::string& name, const keras::metrics::Metric& metric) {
  if (awaits_) child_appeared(name, *metric.trackable());
}

void ReportedMetrics::stop_waiting() {
  if (!awaits_.exchange(false)) return;
  const auto& position = restore_position(*this);
  if (position != nullptr) position->session->give_up(position->node);
}

std::vector<train::TrackableChild> ReportedMetrics::checkpoint_children() {
  std::vector<train::TrackableChild> children;
  for (const NamedMetric& one : metrics_) {
    children.push_back(
        {by_place_ ? decimal_digits(children.size()) : one.log_name, one.metric.trackable().get()});
  }
  return children;
}

}  // namespace cohort::internal
