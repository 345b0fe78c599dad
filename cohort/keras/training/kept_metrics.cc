#include "cohort/keras/training/kept_metrics.h"

namespace cohort::internal {
namespace {

MetricState& state_of(const NamedMetric& one) {
  return static_cast<MetricState&>(*one.metric.trackable());
}

}  // namespace

KeptMetrics::KeptMetrics(const Training& training, const keras::Model& model)
    : training_(training), model_(model) {
  for (const NamedMetric& one : training.metrics(model)) {
    kept_.emplace_back(one, state_of(one).sums());
  }
}

void KeptMetrics::put_back() const {
  for (const NamedMetric& one : training_.metrics(model_)) one.metric.reset_state();
  for (const auto& [one, sums] : kept_) state_of(one).put_back(sums);
}

}  // namespace cohort::internal
