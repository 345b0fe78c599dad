// Applies sample weights to values in losses and metrics, by Keras's rules.
#pragma once

#include "cohort/core/structure/tensor.h"

namespace cohort::internal {

// If one of two tensors has one dimension more than the other, of size 1 at its end, drops it.
void squeeze_last_of_larger(Tensor& a, Tensor& b);

// Returns `weights` (of values' dtype, on its device) in a shape that broadcasts to values: a last
// dimension of size 1 is removed or added if their ranks differ by one.
// Errors: InvalidArgument (it does not broadcast; names both shapes and `what`).
Tensor broadcast_weights(const Tensor& weights, const Tensor& values, const char* what);

// Labels or weights [n] of predictions [n, 1] as [n, 1], which is how fit and evaluate hand them to
// losses and metrics: these would take [n] for one row of n values, or for n rows of each other.
// Others, and undefined ones, as they are.
Tensor with_rows_of(const Tensor& values, const Tensor& predictions);

// Whether `tensor` is of a batch without rows: a replica gets one where a batch has fewer rows than
// there are replicas.
bool has_no_rows(const Tensor& tensor);

// Whether `shape` broadcasts to `target` without making it larger.
bool broadcasts_to(at::IntArrayRef shape, at::IntArrayRef target);

}  // namespace cohort::internal
