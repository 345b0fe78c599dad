// Losses as metrics: their means over all examples of a run.
//
// Shapes and errors: those of the loss of that name (losses/), with sample_weight over its values.
// Predictions may be of any dtype.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "cohort/core/export.h"
#include "cohort/keras/metrics/prediction_metric.h"

namespace cohort::keras::metrics {

class COHORT_API MeanSquaredError : public MeanMetricWrapper {
 public:
  explicit MeanSquaredError(const MetricOptions& options = {});
  template <NameLike Name>
  explicit MeanSquaredError(const Name& name)
      : MeanSquaredError(MetricOptions{.name = std::string(name)}) {}
};

class COHORT_API MeanAbsoluteError : public MeanMetricWrapper {
 public:
  explicit MeanAbsoluteError(const MetricOptions& options = {});
  template <NameLike Name>
  explicit MeanAbsoluteError(const Name& name)
      : MeanAbsoluteError(MetricOptions{.name = std::string(name)}) {}
};

class COHORT_API MeanAbsolutePercentageError : public MeanMetricWrapper {
 public:
  explicit MeanAbsolutePercentageError(const MetricOptions& options = {});
  template <NameLike Name>
  explicit MeanAbsolutePercentageError(const Name& name)
      : MeanAbsolutePercentageError(MetricOptions{.name = std::string(name)}) {}
};

class COHORT_API MeanSquaredLogarithmicError : public MeanMetricWrapper {
 public:
  explicit MeanSquaredLogarithmicError(const MetricOptions& options = {});
  template <NameLike Name>
  explicit MeanSquaredLogarithmicError(const Name& name)
      : MeanSquaredLogarithmicError(MetricOptions{.name = std::string(name)}) {}
};

class COHORT_API LogCoshError : public MeanMetricWrapper {
 public:
  explicit LogCoshError(const MetricOptions& options = {});
  template <NameLike Name>
  explicit LogCoshError(const Name& name)
      : LogCoshError(MetricOptions{.name = std::string(name)}) {}
};

class COHORT_API Hinge : public MeanMetricWrapper {
 public:
  explicit Hinge(const MetricOptions& options = {});
  template <NameLike Name>
  explicit Hinge(const Name& name) : Hinge(MetricOptions{.name = std::string(name)}) {}
};

class COHORT_API SquaredHinge : public MeanMetricWrapper {
 public:
  explicit SquaredHinge(const MetricOptions& options = {});
  template <NameLike Name>
  explicit SquaredHinge(const Name& name)
      : SquaredHinge(MetricOptions{.name = std::string(name)}) {}
};

class COHORT_API CategoricalHinge : public MeanMetricWrapper {
 public:
  explicit CategoricalHinge(const MetricOptions& options = {});
  template <NameLike Name>
  explicit CategoricalHinge(const Name& name)
      : CategoricalHinge(MetricOptions{.name = std::string(name)}) {}
};

class COHORT_API KLDivergence : public MeanMetricWrapper {
 public:
  explicit KLDivergence(const MetricOptions& options = {});
  template <NameLike Name>
  explicit KLDivergence(const Name& name)
      : KLDivergence(MetricOptions{.name = std::string(name)}) {}
};

class COHORT_API Poisson : public MeanMetricWrapper {
 public:
  explicit Poisson(const MetricOptions& options = {});
  template <NameLike Name>
  explicit Poisson(const Name& name) : Poisson(MetricOptions{.name = std::string(name)}) {}
};

struct CrossentropyOptions {
  bool from_logits = false;
  double label_smoothing = 0;  // in [0, 1]
  std::string name = "";       // empty: the metric's own
};

class COHORT_API BinaryCrossentropy : public MeanMetricWrapper {
 public:
  explicit BinaryCrossentropy(const CrossentropyOptions& options = {});
};

class COHORT_API CategoricalCrossentropy : public MeanMetricWrapper {
 public:
  explicit CategoricalCrossentropy(const CrossentropyOptions& options = {});
};

struct SparseCrossentropyOptions {
  bool from_logits = false;
  std::optional<int64_t> ignore_class = std::nullopt;  // examples with this label do not count
  std::string name = "sparse_categorical_crossentropy";
};

class COHORT_API SparseCategoricalCrossentropy : public MeanMetricWrapper {
 public:
  explicit SparseCategoricalCrossentropy(const SparseCrossentropyOptions& options = {});
};

struct CosineSimilarityOptions {
  int64_t axis = -1;  // along which the vectors lie
  std::string name = "cosine_similarity";
};

// The mean cosine of the angle between vectors: 1 for those of one direction. (The loss is minus
// that.)
class COHORT_API CosineSimilarity : public MeanMetricWrapper {
 public:
  explicit CosineSimilarity(const CosineSimilarityOptions& options = {});
};

// The root of the mean of (y_true - y_pred)^2 over all elements. sample_weight: as Mean's, over
// the elements.
class COHORT_API RootMeanSquaredError : public PredictionMetric {
 public:
  explicit RootMeanSquaredError(const MetricOptions& options = {});
  template <NameLike Name>
  explicit RootMeanSquaredError(const Name& name)
      : RootMeanSquaredError(MetricOptions{.name = std::string(name)}) {}
};

// The mean of |y_true - y_pred| / normalizer over all elements; 0 where the normalizer is.
// sample_weight: as Mean's, over the elements.
class COHORT_API MeanRelativeError : public PredictionMetric {
 public:
  // Shape: normalizer broadcasts to the predictions. Errors: InvalidArgument (it is undefined; of
  // an update: it does not broadcast).
  explicit MeanRelativeError(const Tensor& normalizer, const MetricOptions& options = {});
};

}  // namespace cohort::keras::metrics
