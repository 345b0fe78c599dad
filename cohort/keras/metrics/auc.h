// The area under the curve of a yes-or-no classifier, at all thresholds at once.
//
//   metrics::AUC auc({.curve = metrics::Curve::PR});
//   auc.update_state(labels, predictions);
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cohort/core/export.h"
#include "cohort/keras/metrics/prediction_metric.h"

namespace cohort::keras::metrics {

enum class Curve {
  ROC,  // the share of positives found, over the share of negatives taken for positives
  PR,   // precision over recall
};

// How the area between two thresholds is filled.
enum class SummationMethod {
  INTERPOLATION,  // the mean of both heights; for PR Davis and Goadrich's formula (2006)
  MINORING,       // the lower one
  MAJORING,       // the higher one
};

struct AUCOptions {
  int64_t num_thresholds = 200;  // more give a better approximation; above 1
  Curve curve = Curve::ROC;
  SummationMethod summation_method = SummationMethod::INTERPOLATION;
  // In (0, 1) instead of num_thresholds even ones; one below 0 and one above 1 are added.
  std::vector<double> thresholds = {};
  // If above 0, the last dimension has as many labels, whose areas are computed apart and averaged.
  int64_t num_labels = 0;
  // Weights of the labels of the last dimension, in their average or else in the counts; not
  // negative.
  std::vector<double> label_weights = {};
  bool from_logits = false;  // predictions are scores rather than probabilities
  std::string name = "auc";
};

// Shapes: labels and predictions (in [0, 1], others count as 0 or 1) [batch, ..], with num_labels
// [batch, num_labels]; sample_weight broadcasts to them.
class COHORT_API AUC : public PredictionMetric {
 public:
  // Errors: InvalidArgument (an option, with its value).
  explicit AUC(const AUCOptions& options = {});
};

}  // namespace cohort::keras::metrics
