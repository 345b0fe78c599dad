// Batch normalization by the batch's own mean and variance, as one operation each way: two passes
// over memory forward and two backward, where libtorch's operations take some twenty.
#pragma once

#include "cohort/core/structure/tensor.h"

namespace cohort::internal {

// Whether normalize_by_batch takes it: float32 on the host, without gaps, of rank 2 or more and not
// empty, with the channels last.
bool can_normalize_by_batch(const Tensor& x);

struct NormalizedBatch {
  Tensor output;
  Tensor mean;      // [channels], recorded by no tape
  Tensor variance;  // [channels], biased, recorded by no tape
};

// (x - mean) / sqrt(variance + epsilon) * gamma + beta, by channel over all other dimensions. The
// output is differentiable, any number of times. The bits do not depend on the number of threads.
// Shapes: x [.., channels]; gamma and beta [channels], float32, or undefined.
NormalizedBatch normalize_by_batch(const Tensor& x, const Tensor& gamma, const Tensor& beta,
                                   double epsilon);

// The same in libtorch's terms: what the gradients of gradients are taken of.
Tensor normalize_by_batch_reference(const Tensor& x, const Tensor& gamma, const Tensor& beta,
                                    double epsilon);

}  // namespace cohort::internal
