// Functions with a kink, or made of such, whose gradient there is TensorFlow's, which libtorch's
// operations of the same names do not have. All are differentiable any number of times.
//
// Shapes: [..] -> the same; of two operands the one that both broadcast to. Errors: libtorch's.
#pragma once

#include "cohort/core/structure/tensor.h"

namespace cohort::internal {

// The larger of both, NaN if one of them is. If they are equal the gradient is that of `x`.
Tensor maximum(const Tensor& x, const Tensor& y);
Tensor minimum(const Tensor& x, const Tensor& y);

// At 0 the slope of what lies above.
Tensor selu(const Tensor& x);

// log(1 + e^x), to the last bits of a float64.
Tensor softplus(const Tensor& x);

// -log of the probability that the logit gives its label, 0 or 1 or what lies between.
Tensor sigmoid_crossentropy(const Tensor& labels, const Tensor& logits);

}  // namespace cohort::internal
