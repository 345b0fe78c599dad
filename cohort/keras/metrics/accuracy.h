// How often predictions are right.
#pragma once

#include <cstdint>
#include <string>

#include "cohort/core/export.h"
#include "cohort/keras/metrics/prediction_metric.h"

namespace cohort::keras::metrics {

// Labels equal predictions. Shapes: both [batch, ..].
class COHORT_API Accuracy : public MeanMetricWrapper {
 public:
  explicit Accuracy(const MetricOptions& options = {});
  template <NameLike Name>
  explicit Accuracy(const Name& name) : Accuracy(MetricOptions{.name = std::string(name)}) {}
};

// The label is the class with the largest prediction.
// Shapes: labels [batch, ..] (or with a last dimension of 1), predictions [batch, .., classes].
class COHORT_API SparseCategoricalAccuracy : public MeanMetricWrapper {
 public:
  explicit SparseCategoricalAccuracy(const MetricOptions& options = {});
  template <NameLike Name>
  explicit SparseCategoricalAccuracy(const Name& name)
      : SparseCategoricalAccuracy(MetricOptions{.name = std::string(name)}) {}
};

// The largest label and the largest prediction are those of one class; labels are one-hot, say.
// Shapes: both [batch, .., classes].
class COHORT_API CategoricalAccuracy : public MeanMetricWrapper {
 public:
  explicit CategoricalAccuracy(const MetricOptions& options = {});
  template <NameLike Name>
  explicit CategoricalAccuracy(const Name& name)
      : CategoricalAccuracy(MetricOptions{.name = std::string(name)}) {}
};

struct BinaryAccuracyOptions {
  std::string name = "binary_accuracy";
  double threshold = 0.5;  // predictions above it count as 1
};
// Shapes: labels (0 or 1) and predictions [batch, .., d]; each element counts.
class COHORT_API BinaryAccuracy : public MeanMetricWrapper {
 public:
  explicit BinaryAccuracy(const BinaryAccuracyOptions& options = {});
};

struct TopKOptions {
  int64_t k = 5;          // above 0
  std::string name = "";  // empty: the metric's own
};

// Fewer than k classes have a larger prediction than the label's. A class outside of the
// predictions, or whose prediction is not finite, never counts as found.
// Shapes: labels [batch, ..] (or with a last dimension of 1), predictions [batch, .., classes].
class COHORT_API SparseTopKCategoricalAccuracy : public MeanMetricWrapper {
 public:
  // Errors: InvalidArgument (k).
  explicit SparseTopKCategoricalAccuracy(const TopKOptions& options = {});
};

// The same of one-hot labels. Shapes: both [batch, .., classes].
class COHORT_API TopKCategoricalAccuracy : public MeanMetricWrapper {
 public:
  // Errors: InvalidArgument (k).
  explicit TopKCategoricalAccuracy(const TopKOptions& options = {});
};

}  // namespace cohort::keras::metrics

namespace cohort::internal {
// What "accuracy" means to Keras's compile: binary accuracy for predictions of one number, sparse
// for labels without the classes' dimension, else categorical. One value for each example or more.
// Errors: InvalidArgument (shapes).
Tensor accuracy_by_shapes(const Tensor& y_true, const Tensor& y_pred);
}  // namespace cohort::internal
