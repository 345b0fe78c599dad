// R2: how much of the labels' variance the predictions explain.
//
//   metrics::R2Score r2;
//   r2.update_state(targets, predictions);   // 1: exact; 0: no better than the mean
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "cohort/core/export.h"
#include "cohort/keras/metrics/prediction_metric.h"

namespace cohort::keras::metrics {

struct R2ScoreOptions {
  // "uniform_average": the mean over the outputs; "variance_weighted_average": that mean, weighed
  // by the labels' variances. Missing: one score for each output.
  std::optional<std::string> class_aggregation = "uniform_average";
  // Above 0: the adjusted R2 of that many independent variables. Without effect, with a warning,
  // where there are not more labels than these and one.
  int64_t num_regressors = 0;
  // How many outputs there are; 0: as many as the first predictions have. Parameter servers must
  // know it from the start, for they make the metric's variables then.
  int64_t num_outputs = 0;
  std::string name = "r2_score";
};

// 1 - sum((label - prediction)^2) / sum((label - mean of labels)^2), of each output.
// Shapes: labels and predictions [batch, outputs]; sample_weight undefined (1), [], [batch], or
// broadcasts to labels. The result: [], or [outputs] without an aggregation. An infinite score
// counts as 0; without data the result is NaN.
// Errors of an update: InvalidArgument (other shapes; another number of outputs than before).
class COHORT_API R2Score : public PredictionMetric {
 public:
  // Errors: InvalidArgument (an option, with its value).
  explicit R2Score(const R2ScoreOptions& options = {});
};

}  // namespace cohort::keras::metrics
