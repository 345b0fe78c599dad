// The best that a yes-or-no classifier can do in one respect while it is good enough in another,
// over all thresholds.
//
//   metrics::RecallAtPrecision recall(0.9);
//   recall.update_state(labels, predictions);
//
// Shapes, of all of them: as Precision's (confusion.h); predictions count as if cut to [0, 1].
// result() is [], and 0 where no threshold is good enough.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "cohort/core/export.h"
#include "cohort/keras/metrics/prediction_metric.h"

namespace cohort::keras::metrics {

struct BestThresholdOptions {
  int64_t num_thresholds = 200;  // even ones from 0 to 1; above 0; 1: 0.5
  // If set, only this index of the last dimension counts.
  std::optional<int64_t> class_id = std::nullopt;
  std::string name = "";  // empty: the metric's own
};

// The highest share of positive labels found, where of the negative ones a share of `specificity`
// or more is left alone.
class COHORT_API SensitivityAtSpecificity : public PredictionMetric {
 public:
  // Errors, as of the next three: InvalidArgument (a share outside [0, 1]; an option).
  explicit SensitivityAtSpecificity(double specificity, const BestThresholdOptions& options = {});
};

class COHORT_API SpecificityAtSensitivity : public PredictionMetric {
 public:
  explicit SpecificityAtSensitivity(double sensitivity, const BestThresholdOptions& options = {});
};

class COHORT_API PrecisionAtRecall : public PredictionMetric {
 public:
  explicit PrecisionAtRecall(double recall, const BestThresholdOptions& options = {});
};

class COHORT_API RecallAtPrecision : public PredictionMetric {
 public:
  explicit RecallAtPrecision(double precision, const BestThresholdOptions& options = {});
};

}  // namespace cohort::keras::metrics
