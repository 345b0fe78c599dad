// The gaussian error linear unit: x times the share of a normal distribution that lies below it.
#pragma once

#include "cohort/core/structure/tensor.h"

namespace cohort::internal {

// x (1 + erf(x / sqrt 2)) / 2. In place of at::gelu, whose gradient is wrong, or memory that
// nothing has written, where the gradient that it is given lies in another order than x: its kernel
// of oneDNN (libtorch 1.13) takes both to lie alike. Differentiable any number of times.
// Shape: x [..], floating -> the same. Errors: libtorch's.
Tensor gelu(const Tensor& x);

}  // namespace cohort::internal
