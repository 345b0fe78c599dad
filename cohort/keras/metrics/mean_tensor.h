// The mean of tensors, element by element.
//
//   metrics::MeanTensor means({4});
//   means.update_state(value);   // [4]
#pragma once

#include <cstdint>
#include <vector>

#include "cohort/core/export.h"
#include "cohort/keras/metrics/metric.h"

namespace cohort::keras::metrics {

// The (weighted) mean of each element over all updates; 0 where there was none. Shape of the
// result: `shape`, which Keras takes from the first update: here every task must know it from the
// start.
class COHORT_API MeanTensor : public Metric {
 public:
  // Errors: InvalidArgument (a negative size).
  explicit MeanTensor(std::vector<int64_t> shape, const MetricOptions& options = {});

  // Shapes: values `shape`; sample_weight undefined (1), or broadcasts to values, with one
  // dimension less as Mean's. Errors: InvalidArgument (other shapes).
  void update_state(const Tensor& values, const Tensor& sample_weight = Tensor()) const;
  // update_state, then result (in a step: COLLECTIVE).
  Tensor operator()(const Tensor& values, const Tensor& sample_weight = Tensor()) const;

 private:
  std::vector<int64_t> shape_;
};

}  // namespace cohort::keras::metrics
