#include "cohort/keras/metrics/prediction_metric.h"

#include <utility>

#include "cohort/core/error.h"
#include "cohort/core/libtorch_error.h"
#include "cohort/keras/base/masks.h"
#include "cohort/keras/base/policy.h"
#include "cohort/keras/base/weighting.h"
#include "cohort/keras/metrics/metric_state.h"
#include "cohort/ops/gradient_tape.h"

namespace cohort {
namespace internal {
namespace {

// The weights of values of which a loss has left some out (see ignore_class): 0 for those.
Tensor of_counted(const Tensor& values, const Tensor& weights) {
  const Tensor mask = mask_of(values);
  if (!mask.defined()) return weights;
  const Tensor factors = mask.to(values.scalar_type());
  return weights.defined() ? factors * broadcast_weights(weights, factors, "metrics") : factors;
}

}  // namespace
}  // namespace internal

namespace keras::metrics {

PredictionMetric::PredictionMetric(std::shared_ptr<internal::MetricState> state, Update update)
    : Metric(std::move(state)), update_(std::move(update)) {}

void PredictionMetric::update_state(const Tensor& y_true, const Tensor& y_pred,
                                    const Tensor& sample_weight) const {
  if (!y_true.defined() || !y_pred.defined()) {
    throw InvalidArgumentError(internal::str("metric '", name(), "' got ",
                                             internal::describe(y_true), " and ",
                                             internal::describe(y_pred)));
  }
  if (internal::has_no_rows(y_true) && internal::has_no_rows(y_pred)) {
    state().see(y_pred);
    return state().add_nothing();
  }
  const NoGradient no_gradient;
  const auto constant = [](const Tensor& x) { return x.requires_grad() ? x.detach() : x; };
  try {
    update_(state(), constant(y_true), internal::widened(constant(y_pred)), sample_weight);
  } catch (const c10::Error& error) {
    internal::throw_libtorch_error(
        error, internal::str("metric '", name(), "' failed on labels ", internal::describe(y_true),
                             " and predictions ", internal::describe(y_pred)));
  }
}

Tensor PredictionMetric::operator()(const Tensor& y_true, const Tensor& y_pred,
                                    const Tensor& sample_weight) const {
  update_state(y_true, y_pred, sample_weight);
  return result();
}

MeanMetricWrapper::MeanMetricWrapper(Function function, const MetricOptions& options)
    : PredictionMetric(
          internal::make_mean_state(internal::with_name(options, "mean_metric_wrapper").name),
          [function = std::move(function)](internal::MetricState& state, const Tensor& y_true,
                                           const Tensor& y_pred, const Tensor& sample_weight) {
            const Tensor values = function(y_true, y_pred);
            internal::add_to_mean(state, values, internal::of_counted(values, sample_weight));
          }) {}

}  // namespace keras::metrics

keras::metrics::MetricOptions internal::with_name(keras::metrics::MetricOptions options,
                                                  const char* own_name) {
  if (options.name.empty()) options.name = own_name;
  return options;
}

}  // namespace cohort
