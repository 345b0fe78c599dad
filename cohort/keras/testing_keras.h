// For tests of Keras: tensors from numbers, numbers from tensors, texts of errors.
#pragma once

#include <ATen/ops/tensor.h>

#include <string>
#include <vector>

#include "cohort/core/structure/tensor.h"
#include "cohort/core/testing_errors.h"
#include "cohort/keras/base/backend.h"

namespace cohort::keras {

inline Tensor numbers(const std::vector<double>& values, const std::vector<int64_t>& shape,
                      DType dtype = float32) {
  return at::tensor(values, at::dtype(at::kDouble)).reshape(shape).to(dtype);
}
inline Tensor numbers(const std::vector<double>& values) {
  return numbers(values, {static_cast<int64_t>(values.size())});
}

// The elements in row-major order.
inline std::vector<double> elements(const Tensor& tensor) {
  const Tensor flat = tensor.detach().cpu().to(at::kDouble).contiguous();
  return {flat.data_ptr<double>(), flat.data_ptr<double>() + flat.numel()};
}

// float64 layers while it lives.
class Float64 {
 public:
  Float64() { backend::set_floatx("float64"); }
  ~Float64() { backend::set_floatx("float32"); }
};

}  // namespace cohort::keras
