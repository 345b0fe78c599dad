// How sample weights meet values in losses and metrics; Keras's rules.
#pragma once

#include "cohort/core/tensor.h"

namespace cohort::internal {

// If one of two tensors has one dimension more than the other, of size 1 at its end, drops it.
void squeeze_last_of_larger(Tensor& a, Tensor& b);

// `weights` (of values' dtype, on its device) made to broadcast to values: a last dimension of size
// 1 is dropped or added where their ranks differ by one.
// Errors: InvalidArgument (it does not broadcast; names both shapes and `what`).
Tensor broadcast_weights(const Tensor& weights, const Tensor& values, const char* what);

// Whether `shape` broadcasts to `target` without making it larger.
bool broadcasts_to(at::IntArrayRef shape, at::IntArrayRef target);

}  // namespace cohort::internal
