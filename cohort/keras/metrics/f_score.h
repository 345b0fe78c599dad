// F scores: the weighted harmonic mean of precision and recall, for many classes or labels.
//
//   metrics::F1Score f1({.average = "macro", .threshold = 0.5});
//   f1.update_state(one_hot_labels, predictions);
//
// Shapes, of both: labels (0 or 1) and predictions [batch, classes]; sample_weight undefined (1) or
// [batch]. The result: [classes], or [] with an average.
// Errors of an update: InvalidArgument (other shapes; another number of classes than before).
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "cohort/core/export.h"
#include "cohort/keras/metrics/prediction_metric.h"

namespace cohort::keras::metrics {

struct F1ScoreOptions {
  // "micro": of all classes' counts together; "macro": the mean over the classes; "weighted": that
  // mean, weighed by how often a class is the label's. Missing: one score for each class.
  std::optional<std::string> average = std::nullopt;
  // Predictions above it, in (0, 1], are positive. Missing: the largest of each example is, unless
  // it is 0.
  std::optional<double> threshold = std::nullopt;
  // How many there are; 0: as many as the first predictions have. Parameter servers must know it
  // from the start, for they make the metric's variables then (unless the average is "micro").
  int64_t num_classes = 0;
  std::string name = "f1_score";
};

// 2 * precision * recall / (precision + recall); 0 where that is 0 / 0.
class COHORT_API F1Score : public PredictionMetric {
 public:
  // Errors: InvalidArgument (an option, with its value).
  explicit F1Score(const F1ScoreOptions& options = {});
};

struct FBetaScoreOptions {
  std::optional<std::string> average = std::nullopt;
  double beta = 1;  // above 0: recall counts this many times as much as precision
  std::optional<double> threshold = std::nullopt;
  int64_t num_classes = 0;
  std::string name = "fbeta_score";
};

// (1 + beta^2) * precision * recall / (beta^2 * precision + recall); the options as F1Score's.
class COHORT_API FBetaScore : public PredictionMetric {
 public:
  // Errors: InvalidArgument (an option, with its value).
  explicit FBetaScore(const FBetaScoreOptions& options = {});
};

}  // namespace cohort::keras::metrics
