// Cohort's tensor is libtorch's: `cohort::Tensor` and `torch::Tensor` are one type.
//
// This header costs 2.3 s of compile time where <torch/torch.h> costs 9 s; it is the most that a
// public header of Cohort includes of libtorch.
#pragma once

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>

#include "cohort/core/export.h"

namespace cohort {

using Tensor = at::Tensor;
using DType = at::ScalarType;

inline constexpr DType float32 = DType::Float;
inline constexpr DType float64 = DType::Double;
inline constexpr DType int32 = DType::Int;
inline constexpr DType int64 = DType::Long;
inline constexpr DType uint8 = DType::Byte;
inline constexpr DType boolean = DType::Bool;

namespace internal {
// "[2,3]".
std::string shape_str(at::IntArrayRef shape);
// "float32", "int64": TensorFlow's names.
COHORT_API std::string dtype_name(DType dtype);
// "float32 [2,3]"; "undefined tensor".
std::string describe(const Tensor& tensor);
}  // namespace internal

}  // namespace cohort
