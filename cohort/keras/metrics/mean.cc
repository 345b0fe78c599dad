#include "cohort/keras/metrics/mean.h"

#include <ATen/ops/full.h>

#include "cohort/keras/base/weighting.h"
#include "cohort/keras/metrics/metric_state.h"
#include "cohort/ops/gradient_tape.h"

namespace cohort::keras::metrics {

Mean::Mean(const MetricOptions& options)
    : Metric(internal::make_mean_state(options.name.empty() ? "mean" : options.name)) {
  describe("Mean");
}

void Mean::update_state(const Tensor& values, const Tensor& sample_weight) const {
  internal::add_to_mean(state(), values, sample_weight);
}

void Mean::update_state(double value) const { update_state(at::full({}, value, float64)); }

Tensor Mean::operator()(const Tensor& values, const Tensor& sample_weight) const {
  update_state(values, sample_weight);
  return result();
}

Sum::Sum(const MetricOptions& options)
    : Metric(std::make_shared<internal::MetricState>(internal::MetricState::Options{
          options.name.empty() ? "sum" : options.name,
          {"total"},
          [](const std::vector<Tensor>& values) { return values[0]; }})) {
  describe("Sum");
}

void Sum::update_state(const Tensor& values, const Tensor& sample_weight) const {
  const NoGradient no_gradient;
  Tensor weighted = values.detach().to(state().dtype());
  if (sample_weight.defined()) {
    weighted = internal::without_inner_dims(weighted, sample_weight, internal::InnerDims::kSum);
    weighted =
        weighted * internal::broadcast_weights(sample_weight.detach(), weighted, name().c_str());
  }
  state().add({weighted.sum()});
}

Tensor Sum::operator()(const Tensor& values, const Tensor& sample_weight) const {
  update_state(values, sample_weight);
  return result();
}

}  // namespace cohort::keras::metrics
