// Sums of few numbers, as one operation each way: what a loss is put together from.
#pragma once

#include <cstdint>
#include <optional>

#include "cohort/core/tensor.h"

namespace cohort::internal {

// sum(x) / divisor. Shape: [..] -> []; dtype: x's, floating. Differentiable, any number of times.
Tensor divided_sum(const Tensor& x, int64_t divisor);

// sum(x), as a number, of a few bools or float32 on the host; nothing of other tensors.
std::optional<double> sum_if_small(const Tensor& x);

// The sum of tensors of one shape, dtype and device; one at least. Differentiable, any number of times.
Tensor sum_of(at::TensorList tensors);

// Ones, as at::ones_like: the gradient that a backward pass begins with.
Tensor ones_of(const Tensor& like);

}  // namespace cohort::internal
