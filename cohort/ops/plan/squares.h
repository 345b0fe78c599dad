// Sums of squares, which penalties on weights take in every step: one pass over the weights each
// way.
#pragma once

#include <cstdint>

#include "cohort/core/structure/tensor.h"

namespace cohort::internal {

// factor * sum(x^2). Shape: [..] -> []; dtype: x's, floating. Differentiable, any number of times.
// The bits of a sum of float32 on the host depend on nothing but the numbers.
Tensor sum_of_squares(const Tensor& x, double factor);

// The sum of the squares of `count` numbers, by the caller's intra-op threads.
double add_squares(const float* values, int64_t count);

}  // namespace cohort::internal
