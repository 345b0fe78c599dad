// Metrics of labels and predictions: what a training loop updates after each batch.
//
//   metrics::PredictionMetric accuracy = metrics::SparseCategoricalAccuracy();
//   accuracy.update_state(labels, predictions);
//   metrics::MeanMetricWrapper worst(
//       [](const Tensor& y, const Tensor& p) { return (y - p).abs().amax(-1); },
//       {.name = "worst"});
#pragma once

#include <functional>
#include <memory>

#include "cohort/core/export.h"
#include "cohort/keras/metrics/metric.h"

namespace cohort::keras::metrics {

// Any of them: a Precision, say, can be kept as one.
class COHORT_API PredictionMetric : public Metric {
 public:
  // Shapes: as the metric says; sample_weight undefined (1), or as it says. Labels and predictions
  // without rows add nothing, and no function of the metric sees them.
  // Errors: InvalidArgument (shapes).
  void update_state(const Tensor& y_true, const Tensor& y_pred,
                    const Tensor& sample_weight = Tensor()) const;
  // update_state, then result (in a step: COLLECTIVE).
  Tensor operator()(const Tensor& y_true, const Tensor& y_pred,
                    const Tensor& sample_weight = Tensor()) const;

 protected:
  // Adds to `state`. The tensors record no gradients.
  using Update = std::function<void(internal::MetricState& state, const Tensor& y_true,
                                    const Tensor& y_pred, const Tensor& sample_weight)>;
  PredictionMetric(std::shared_ptr<internal::MetricState> state, Update update);

 private:
  Update update_;
};

// The mean of a function of labels and predictions, with one value for each example or more.
// Shapes: those of the function; sample_weight as Mean's, over the function's values.
class COHORT_API MeanMetricWrapper : public PredictionMetric {
 public:
  using Function = std::function<Tensor(const Tensor& y_true, const Tensor& y_pred)>;

  explicit MeanMetricWrapper(Function function, const MetricOptions& options = {});
};

}  // namespace cohort::keras::metrics

namespace cohort::internal {
// `options` with `own_name` where they have no name.
keras::metrics::MetricOptions with_name(keras::metrics::MetricOptions options,
                                        const char* own_name);
}  // namespace cohort::internal
