#include "cohort/keras/model/compile_options.h"

#include <utility>

#include "cohort/core/text.h"
#include "cohort/keras/losses/get.h"
#include "cohort/keras/metrics/get.h"
#include "cohort/keras/metrics/metric_state.h"
#include "cohort/keras/metrics/reported_metrics.h"
#include "cohort/keras/optimizers/optimizers.h"

namespace cohort::keras {

optimizers::Optimizer OptimizerArgument::make() const {
  return object_ ? *object_ : optimizers::get(name_);
}

void LossArgument::refuse_parameter(const std::string& name) {
  throw InvalidArgumentError(internal::str("compile: the loss has a parameter ",
                                           internal::quoted(name),
                                           ", which nothing would train; make it part of the "
                                           "model, or freeze it (requires_grad_(false))"));
}

losses::Loss LossArgument::loss() const { return loss_ ? *loss_ : losses::get(name_); }

void MetricArgument::check() const {
  internal::check_log_name(name_, "compile got a metric with");
  if (!object_ && !fn_) internal::check_metric_name(name_);
  if (!object_) return;
  const auto& state = static_cast<internal::MetricState&>(*object_->metric.trackable());
  internal::check_is_scalar(name_, state.result_of_nothing());
}

MetricArgument::Made MetricArgument::make_another() const { return another_ ? another_() : make(); }

MetricArgument::Made MetricArgument::make() const {
  if (object_) return *object_;
  const metrics::PredictionMetric metric =
      fn_ ? metrics::MeanMetricWrapper(fn_, {.name = name_}) : metrics::get(name_);
  return {metric, [metric](const Tensor& y_true, const Tensor& y_pred, const Tensor& weight) {
            metric.update_state(y_true, y_pred, weight);
          }};
}

}  // namespace cohort::keras
