// x W + b, with the product split over the calling thread's intra-op threads.
//
// Inside a step BLAS runs on one thread (core/intra_op_threads.h): its own threads would spin on
// the cores that operations and replicas need. Where a replica has several cores to itself a large
// product is cut into blocks of rows or columns instead, one for each of libtorch's threads. Where
// BLAS has threads of its own, outside of steps, the product is left to it.
#pragma once

#include "cohort/core/structure/tensor.h"

namespace cohort::internal {

// x: [batch, in], weight: [in, units], bias: [units] or undefined -> [batch, units], as addmm.
// Differentiable, any number of times. One number of threads always gives the same bits.
Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias);

}  // namespace cohort::internal
