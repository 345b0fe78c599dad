#include "cohort/keras/metrics/mean_tensor.h"

#include <ATen/ops/ones_like.h>

#include <utility>

#include "cohort/core/error.h"
#include "cohort/core/text.h"
#include "cohort/keras/base/weighting.h"
#include "cohort/keras/metrics/confusion_counts.h"
#include "cohort/keras/metrics/metric_state.h"
#include "cohort/ops/gradient_tape.h"

namespace cohort::keras::metrics {
namespace {

std::shared_ptr<internal::MetricState> make_mean_tensor_state(const std::vector<int64_t>& shape,
                                                              const MetricOptions& options) {
  for (const int64_t size : shape) {
    if (size >= 0) continue;
    throw InvalidArgumentError(internal::str("MeanTensor: the shape ", internal::shape_str(shape),
                                             " has a negative size"));
  }
  return std::make_shared<internal::MetricState>(
      internal::MetricState::Options{.name = options.name.empty() ? "mean_tensor" : options.name,
                                     .variable_names = {"total", "count"},
                                     .result =
                                         [](const std::vector<Tensor>& values) {
                                           return internal::divide_no_nan(values[0], values[1]);
                                         },
                                     .shape = shape});
}

}  // namespace

MeanTensor::MeanTensor(std::vector<int64_t> shape, const MetricOptions& options)
    : Metric(make_mean_tensor_state(shape, options)), shape_(std::move(shape)) {
  describe("MeanTensor", Config().set("shape", shape_));
}

void MeanTensor::update_state(const Tensor& values, const Tensor& sample_weight) const {
  if (!values.defined() || values.sizes() != shape_) {
    throw InvalidArgumentError(internal::str("metric '", name(), "' of shape ",
                                             internal::shape_str(shape_), " got ",
                                             internal::describe(values)));
  }
  const NoGradient no_gradient;
  Tensor sums = values.detach().to(state().dtype());
  Tensor counts = at::ones_like(sums);
  if (sample_weight.defined()) {
    const Tensor weights =
        internal::broadcast_weights(sample_weight.detach(), sums, name().c_str()).expand_as(sums);
    counts = counts * weights;
    sums = sums * weights;
  }
  state().add({sums, counts});
}

Tensor MeanTensor::operator()(const Tensor& values, const Tensor& sample_weight) const {
  update_state(values, sample_weight);
  return result();
}

}  // namespace cohort::keras::metrics
