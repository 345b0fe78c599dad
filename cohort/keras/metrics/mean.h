// Sums and means of values.
#pragma once

#include "cohort/core/export.h"
#include "cohort/keras/metrics/metric.h"

namespace cohort::keras::metrics {

// The (weighted) mean of all values that it was given.
class COHORT_API Mean : public Metric {
 public:
  Mean() : Mean(MetricOptions{}) {}
  explicit Mean(const MetricOptions& options);
  template <NameLike Name>
  explicit Mean(const Name& name) : Mean(MetricOptions{.name = std::string(name)}) {}

  // Shapes: values [..], any dtype; sample_weight undefined (1), or broadcasts to values. With
  // one dimension less it holds for a whole row of the last one, of which each value counts; with
  // still less, values are first averaged over the others.
  // Errors: InvalidArgument (sample_weight does not fit).
  void update_state(const Tensor& values, const Tensor& sample_weight = Tensor()) const;
  void update_state(double value) const;
  // update_state, then result (in a step: COLLECTIVE).
  Tensor operator()(const Tensor& values, const Tensor& sample_weight = Tensor()) const;
};

// The (weighted) sum of all values that it was given; arguments as Mean's, added up instead of
// averaged.
class COHORT_API Sum : public Metric {
 public:
  Sum() : Sum(MetricOptions{}) {}
  explicit Sum(const MetricOptions& options);
  template <NameLike Name>
  explicit Sum(const Name& name) : Sum(MetricOptions{.name = std::string(name)}) {}

  void update_state(const Tensor& values, const Tensor& sample_weight = Tensor()) const;
  Tensor operator()(const Tensor& values, const Tensor& sample_weight = Tensor()) const;
};

}  // namespace cohort::keras::metrics
