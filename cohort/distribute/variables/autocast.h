// The dtype in which code computes, where that is not the dtype in which variables are kept.
//
//   const ScopedAutocast autocast(at::kBFloat16);
//   Tensor y = at::mm(x, kernel.value());   // bfloat16, if the kernel's spec says autocast
#pragma once

#include <optional>

#include "cohort/core/structure/tensor.h"

namespace cohort::internal {

// `x` as code that computes in `dtype` takes it: in this dtype. CPUs do not compute in float16: for
// them it is float32 with values that float16 has.
Tensor computable(const Tensor& x, DType dtype);

// What code that computes in `dtype` has made, in this dtype.
Tensor as_computed(const Tensor& result, DType dtype);

// Makes the calling thread read variables with VariableSpec::autocast in this dtype as long as it
// lives; nullopt: in their own. Gradients have the variable's dtype in either case.
// Thread safety: one thread; the latest of several that live holds.
class ScopedAutocast {
 public:
  explicit ScopedAutocast(std::optional<DType> dtype);
  ~ScopedAutocast();
  ScopedAutocast(const ScopedAutocast&) = delete;
  ScopedAutocast& operator=(const ScopedAutocast&) = delete;

 private:
  std::optional<DType> before_;
};

// The value of a variable with VariableSpec::autocast, as the calling code reads it.
Tensor autocast_value(Tensor value);

}  // namespace cohort::internal
