// Metrics of yes-or-no predictions: how many were right and wrong of either kind.
//
//   metrics::Precision precision({.thresholds = {0.5}});
//   precision.update_state(labels, predictions);
//   metrics::Recall recall({.top_k = 3, .class_id = 7});
//
// A prediction is positive above the threshold, a label unless it is 0.
// Shapes, of all of them: labels and predictions [batch, ..]; one may have or lack a last dimension
// of 1. sample_weight undefined, or broadcasts to the predictions. result() is [], or [n] with n
// thresholds, in their order.
// Errors: InvalidArgument (other shapes).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cohort/core/export.h"
#include "cohort/keras/metrics/prediction_metric.h"

namespace cohort::keras::metrics {

struct ConfusionCountOptions {
  std::vector<double> thresholds = {0.5};  // each in [0, 1]
  std::string name = "";                   // empty: the metric's own
};

// The (weighted) number of positive predictions for positive labels.
class COHORT_API TruePositives : public PredictionMetric {
 public:
  // Errors, as of the next three: InvalidArgument (thresholds).
  explicit TruePositives(const ConfusionCountOptions& options = {});
};

// Counts negative predictions for negative labels.
class COHORT_API TrueNegatives : public PredictionMetric {
 public:
  explicit TrueNegatives(const ConfusionCountOptions& options = {});
};

// Counts positive predictions for negative labels.
class COHORT_API FalsePositives : public PredictionMetric {
 public:
  explicit FalsePositives(const ConfusionCountOptions& options = {});
};

// Counts negative predictions for positive labels.
class COHORT_API FalseNegatives : public PredictionMetric {
 public:
  explicit FalseNegatives(const ConfusionCountOptions& options = {});
};

struct PrecisionOptions {
  // Each in [0, 1]. Empty: 0.5, or with top_k none, so that the k best count whatever they are.
  std::vector<double> thresholds = {};
  // If set, only the largest k of the predictions along the last dimension can be positive.
  std::optional<int64_t> top_k = std::nullopt;
  // If set, only this index of the last dimension counts.
  std::optional<int64_t> class_id = std::nullopt;
  std::string name = "";  // empty: the metric's own
};

// The share of positive predictions whose labels are positive; 0 without any.
class COHORT_API Precision : public PredictionMetric {
 public:
  // Errors: InvalidArgument (an option, with its value).
  explicit Precision(const PrecisionOptions& options = {});
};

using RecallOptions = PrecisionOptions;

// The share of positive labels whose predictions are positive; 0 without any.
class COHORT_API Recall : public PredictionMetric {
 public:
  // Errors: InvalidArgument (an option, with its value).
  explicit Recall(const RecallOptions& options = {});
};

}  // namespace cohort::keras::metrics
