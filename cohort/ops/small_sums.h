// Sums of few numbers, as one operation each way: what a loss is put together from.
#pragma once

#include <c10/util/ArrayRef.h>

#include <cstdint>
#include <optional>

#include "cohort/core/structure/tensor.h"

namespace cohort::internal {

// factor * sum(x) / divisor.
struct SumTerm {
  Tensor x;
  int64_t divisor = 1;
  double factor = 1;
};
// The sum of the terms, one at least, as a scalar. Shapes: [..] each; floating dtypes.
// Differentiable, any number of times.
Tensor sum_of_terms(c10::ArrayRef<SumTerm> terms);

// sum(x) / divisor: the sum of one term.
Tensor divided_sum(const Tensor& x, int64_t divisor);

// sum(x), as a number, of a few bools or float32 on the host; nothing of other tensors.
std::optional<double> sum_if_small(const Tensor& x);

// The sum of tensors of one shape, dtype and device; one at least. Differentiable, any number of
// times.
Tensor sum_of(at::TensorList tensors);

// Ones, as at::ones_like: the gradient that a backward pass begins with.
Tensor ones_of(const Tensor& like);

}  // namespace cohort::internal
