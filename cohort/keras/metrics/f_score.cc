#include "cohort/keras/metrics/f_score.h"

#include <ATen/ops/logical_and.h>

#include <memory>
#include <utility>

#include "cohort/core/error.h"
#include "cohort/core/text.h"
#include "cohort/keras/base/config_json.h"
#include "cohort/keras/losses/crossentropy.h"
#include "cohort/keras/metrics/confusion_counts.h"
#include "cohort/keras/metrics/metric_state.h"

namespace cohort {
namespace internal {
namespace {

using keras::metrics::F1ScoreOptions;
using keras::metrics::FBetaScoreOptions;

FBetaScoreOptions of_beta_one(const F1ScoreOptions& options) {
  return {.average = options.average,
          .threshold = options.threshold,
          .num_classes = options.num_classes,
          .name = options.name};
}

// Errors: InvalidArgument.
void check_f_score(const char* metric, const FBetaScoreOptions& options) {
  if (options.average && *options.average != "micro" && *options.average != "macro" &&
      *options.average != "weighted") {
    throw InvalidArgumentError(str(metric, ": average is ", quoted(*options.average),
                                   "; it must be missing, 'micro', 'macro' or 'weighted'"));
  }
  if (!(options.beta > 0)) {
    throw InvalidArgumentError(str(metric, ": beta is ", options.beta, "; it must be above 0"));
  }
  if (options.threshold && !(*options.threshold > 0 && *options.threshold <= 1)) {
    throw InvalidArgumentError(
        str(metric, ": threshold is ", *options.threshold, "; it must lie in (0, 1]"));
  }
  if (options.num_classes < 0) {
    throw InvalidArgumentError(
        str(metric, ": num_classes is ", options.num_classes, "; it must not be below 0"));
  }
  check_not_too_many(metric, "num_classes", options.num_classes);
}

// values: true positives, false positives, false negatives, labels of each class.
Tensor f_score_of(const std::vector<Tensor>& values, const FBetaScoreOptions& options) {
  const Tensor& hits = values[0];
  const Tensor precision = divide_no_nan(hits, hits + values[1]);
  const Tensor recall = divide_no_nan(hits, hits + values[2]);
  const double square = options.beta * options.beta;
  const Tensor scores =
      divide_no_nan(precision * recall, precision * square + recall) * (1 + square);
  if (!options.average) return scores;
  if (*options.average != "weighted") return scores.mean();
  return (scores * divide_no_nan(values[3], values[3].sum())).sum();
}

std::shared_ptr<MetricState> make_f_score_state(const char* metric,
                                                const FBetaScoreOptions& options) {
  check_f_score(metric, options);
  const bool is_micro = options.average && *options.average == "micro";
  MetricState::Options state{.name = options.name,
                             .variable_names = {"true_positives", "false_positives",
                                                "false_negatives", "intermediate_weights"},
                             .result = [options](const std::vector<Tensor>& values) {
                               return f_score_of(values, options);
                             }};
  if (!is_micro && options.num_classes > 0) state.shape = {options.num_classes};
  state.shape_is_classes = !is_micro && options.num_classes == 0;
  return std::make_shared<MetricState>(std::move(state));
}

// Errors: InvalidArgument.
void check_rows_of_classes(const MetricState& state, const Tensor& y_true, const Tensor& y_pred,
                           int64_t num_classes) {
  const bool fits = y_pred.dim() == 2 && y_true.sizes() == y_pred.sizes();
  if (fits && (num_classes == 0 || y_pred.size(1) == num_classes)) return;
  throw InvalidArgumentError(str("metric '", state.name(),
                                 "' takes labels and predictions [batch, classes]",
                                 num_classes == 0 ? "" : str(" of ", num_classes, " classes"),
                                 ", but got ", describe(y_true), " and ", describe(y_pred)));
}

Tensor weights_of_rows(const MetricState& state, const Tensor& sample_weight, const Tensor& like) {
  const Tensor weights = sample_weight.detach().to(like.device(), like.scalar_type());
  if (weights.dim() == 0) return weights;
  if (weights.dim() == 1 && weights.size(0) == like.size(0)) return weights.unsqueeze(1);
  if (weights.dim() == 2 && weights.size(0) == like.size(0) && weights.size(1) == 1) return weights;
  throw InvalidArgumentError(str("metric '", state.name(), "': sample_weight ",
                                 describe(sample_weight), " is not one for each of ", like.size(0),
                                 " examples"));
}

auto make_f_score_update(const FBetaScoreOptions& options) {
  return [options](MetricState& state, const Tensor& y_true, const Tensor& y_pred,
                   const Tensor& sample_weight) {
    check_real_labels(y_true, state.name().c_str());
    check_rows_of_classes(state, y_true, y_pred, options.num_classes);
    state.see(y_pred);
    const Tensor predictions = y_pred.to(state.dtype());
    const Tensor labels = y_true.to(predictions.device(), state.dtype());
    // The largest is positive where there is no threshold; an example of zeros has none.
    constexpr double kZero = 1e-9;
    const Tensor positive =
        options.threshold ? predictions.gt(*options.threshold)
                          : at::logical_and(predictions.ge(predictions.amax(-1, /*keepdim=*/true)),
                                            predictions.abs().gt(kZero));
    const Tensor taken = positive.to(state.dtype());
    const bool is_micro = options.average && *options.average == "micro";
    const auto sum = [&](const Tensor& each) {
      const Tensor weighed =
          sample_weight.defined() ? each * weights_of_rows(state, sample_weight, each) : each;
      return is_micro ? weighed.sum() : weighed.sum(0);
    };
    state.add(
        {sum(taken * labels), sum(taken * (1 - labels)), sum((1 - taken) * labels), sum(labels)});
  };
}

keras::Config f_score_config(const std::optional<std::string>& average,
                             const std::optional<double>& threshold) {
  return ConfigData::config_of({{"average", average ? Json(*average) : Json(nullptr)},
                                {"threshold", threshold ? Json(*threshold) : Json(nullptr)}});
}

}  // namespace
}  // namespace internal

namespace keras::metrics {

F1Score::F1Score(const F1ScoreOptions& options)
    : PredictionMetric(internal::make_f_score_state("F1Score", internal::of_beta_one(options)),
                       internal::make_f_score_update(internal::of_beta_one(options))) {
  Config config = internal::f_score_config(options.average, options.threshold);
  if (options.num_classes > 0) config.set("num_classes", options.num_classes);
  describe("F1Score", config);
}

FBetaScore::FBetaScore(const FBetaScoreOptions& options)
    : PredictionMetric(internal::make_f_score_state("FBetaScore", options),
                       internal::make_f_score_update(options)) {
  Config config = internal::f_score_config(options.average, options.threshold);
  config.set("beta", options.beta);
  if (options.num_classes > 0) config.set("num_classes", options.num_classes);
  describe("FBetaScore", config);
}

}  // namespace keras::metrics
}  // namespace cohort
