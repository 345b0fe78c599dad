// How often predictions are right.
#pragma once

#include "cohort/core/export.h"
#include "cohort/keras/metrics/metric.h"

namespace cohort::keras::metrics {

// A metric that is the mean of a function of labels and predictions.
class COHORT_API MeanOfMatches : public Metric {
 public:
  // One value for each prediction.
  using Function = Tensor (*)(const Tensor& y_true, const Tensor& y_pred, double threshold);

  // Shapes: as the metric says; sample_weight as Mean's, over the matches.
  // Errors: InvalidArgument (shapes).
  void update_state(const Tensor& y_true, const Tensor& y_pred,
                    const Tensor& sample_weight = Tensor()) const;
  // update_state, then result (in a step: COLLECTIVE).
  Tensor operator()(const Tensor& y_true, const Tensor& y_pred,
                    const Tensor& sample_weight = Tensor()) const;

 protected:
  MeanOfMatches(const std::string& name, Function function, double threshold = 0);

 private:
  Function function_;
  double threshold_;
};

// Labels equal predictions. Shapes: both [batch, ..].
class COHORT_API Accuracy : public MeanOfMatches {
 public:
  explicit Accuracy(const MetricOptions& options = {});
};

// The label is the class with the largest prediction.
// Shapes: labels [batch, ..] (or with a last dimension of 1), predictions [batch, .., classes].
class COHORT_API SparseCategoricalAccuracy : public MeanOfMatches {
 public:
  explicit SparseCategoricalAccuracy(const MetricOptions& options = {});
};

struct BinaryAccuracyOptions {
  std::string name = "binary_accuracy";
  double threshold = 0.5;  // predictions above it count as 1
};
// Shapes: labels (0 or 1) and predictions [batch, .., d]; matches are averaged over d.
class COHORT_API BinaryAccuracy : public MeanOfMatches {
 public:
  explicit BinaryAccuracy(const BinaryAccuracyOptions& options = {});
};

}  // namespace cohort::keras::metrics
