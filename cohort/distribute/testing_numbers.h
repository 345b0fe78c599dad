// For tests of values and variables: numbers in and out.
#pragma once

#include <ATen/ops/full.h>

#include <vector>

#include "cohort/distribute/values/values.h"
#include "cohort/distribute/variables/variable.h"

namespace cohort::distribute {

// A float64 tensor of shape [].
inline Tensor number(double value) { return at::full({}, value, at::kDouble); }

inline std::vector<double> values(const PerReplica<Tensor>& tensors) {
  std::vector<double> numbers;
  for (const Tensor& tensor : tensors.values()) numbers.push_back(tensor.item<double>());
  return numbers;
}

inline std::vector<double> components(const Variable& v) { return values(v.components()); }

}  // namespace cohort::distribute
