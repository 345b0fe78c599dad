// Cohort's tensor, which is libtorch's; no public header includes more of libtorch than this one.
#ifdef __clang__  // which wants the complete IValue before ATen's other headers name it
#include <ATen/core/ivalue.h>
#endif
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
