#include "cohort/keras/metrics/r2_score.h"

#include <ATen/ops/full.h>

#include <memory>
#include <utility>

#include "cohort/core/error.h"
#include "cohort/core/observe/logging.h"
#include "cohort/core/text.h"
#include "cohort/keras/base/config_json.h"
#include "cohort/keras/base/weighting.h"
#include "cohort/keras/losses/crossentropy.h"
#include "cohort/keras/metrics/confusion_counts.h"
#include "cohort/keras/metrics/metric_state.h"

namespace cohort {
namespace internal {
namespace {

using keras::metrics::R2ScoreOptions;

// Errors: InvalidArgument.
void check_r2(const R2ScoreOptions& options) {
  if (options.class_aggregation && *options.class_aggregation != "uniform_average" &&
      *options.class_aggregation != "variance_weighted_average") {
    throw InvalidArgumentError(
        str("R2Score: class_aggregation is ", quoted(*options.class_aggregation),
            "; it must be missing, 'uniform_average' or 'variance_weighted_average'"));
  }
  if (options.num_regressors < 0) {
    throw InvalidArgumentError(
        str("R2Score: num_regressors is ", options.num_regressors, "; it must not be below 0"));
  }
  if (options.num_outputs < 0) {
    throw InvalidArgumentError(
        str("R2Score: num_outputs is ", options.num_outputs, "; it must not be below 0"));
  }
  check_not_too_many("R2Score", "num_outputs", options.num_outputs);
}

// For more independent variables a score is worth less.
Tensor adjusted_r2(const Tensor& score, int64_t samples, const R2ScoreOptions& options) {
  const int64_t regressors = options.num_regressors;
  if (regressors == 0) return score;
  if (regressors >= samples - 1) {
    log_warning("metric '", options.name, "': ", regressors, " regressors are too many for ",
                samples, " labels; the result is the R2 that is not adjusted");
    return score;
  }
  return 1 - (1 - score) * (samples - 1) / (samples - regressors - 1);
}

// values: number of labels, sums of their squares, of labels, of squared errors, of weights.
Tensor r2_of(const std::vector<Tensor>& values, const R2ScoreOptions& options) {
  const Tensor& sum = values[2];
  const Tensor total = values[1] - sum * (sum / values[4]);
  Tensor scores = 1 - values[3] / total;
  scores = scores.masked_fill(scores.isinf(), 0);
  if (options.class_aggregation && *options.class_aggregation == "uniform_average") {
    scores = scores.mean();
  } else if (options.class_aggregation) {
    scores = (total * scores).sum() / total.sum();
  }
  return adjusted_r2(scores, values[0].item<int64_t>(), options);
}

std::shared_ptr<MetricState> make_r2_state(const R2ScoreOptions& options) {
  check_r2(options);
  MetricState::Options state{
      .name = options.name,
      .variable_names = {"num_samples", "squared_sum", "sum", "residual", "count"},
      .result = [options](const std::vector<Tensor>& values) { return r2_of(values, options); }};
  if (options.num_outputs > 0) state.shape = {options.num_outputs};
  state.shape_is_classes = options.num_outputs == 0;
  state.first_is_count = true;
  return std::make_shared<MetricState>(std::move(state));
}

void update_r2(MetricState& state, const R2ScoreOptions& options, const Tensor& y_true,
               const Tensor& y_pred, const Tensor& sample_weight) {
  check_real_labels(y_true, state.name().c_str());
  if (y_pred.dim() != 2 || y_true.sizes() != y_pred.sizes() ||
      (options.num_outputs > 0 && y_pred.size(1) != options.num_outputs)) {
    throw InvalidArgumentError(
        str("metric '", state.name(), "' takes labels and predictions [batch, outputs]",
            options.num_outputs == 0 ? "" : str(" of ", options.num_outputs, " outputs"),
            ", but got ", describe(y_true), " and ", describe(y_pred)));
  }
  state.see(y_pred);
  const Tensor predictions = y_pred.to(state.dtype());
  const Tensor labels = y_true.to(predictions.device(), state.dtype());
  const Tensor weights =
      sample_weight.defined()
          ? broadcast_weights(sample_weight.detach(), labels, state.name().c_str())
                .expand_as(labels)
          : at::full({}, 1, labels.options()).expand_as(labels);
  const Tensor weighed = labels * weights;
  state.add({at::full({}, labels.numel(), labels.options().dtype(at::kInt)),
             (labels * weighed).sum(0), weighed.sum(0),
             ((labels - predictions).square() * weights).sum(0), weights.sum(0)});
}

keras::Config r2_config(const R2ScoreOptions& options) {
  Json config = {{"class_aggregation",
                  options.class_aggregation ? Json(*options.class_aggregation) : Json(nullptr)},
                 {"num_regressors", options.num_regressors}};
  if (options.num_outputs > 0) config["num_outputs"] = options.num_outputs;
  return ConfigData::config_of(std::move(config));
}

}  // namespace
}  // namespace internal

namespace keras::metrics {

R2Score::R2Score(const R2ScoreOptions& options)
    : PredictionMetric(internal::make_r2_state(options),
                       [options](internal::MetricState& state, const Tensor& y_true,
                                 const Tensor& y_pred, const Tensor& sample_weight) {
                         internal::update_r2(state, options, y_true, y_pred, sample_weight);
                       }) {
  describe("R2Score", internal::r2_config(options));
}

}  // namespace keras::metrics
}  // namespace cohort
