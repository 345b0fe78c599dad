// What dropout keeps. For sources of layers.
#pragma once

#include "cohort/core/structure/tensor.h"
#include "cohort/ops/random.h"

namespace cohort::internal {

// 1 with probability 1 - rate, else 0. Shapes: `shape`, in the dtype and on the device of
// `options`.
Tensor kept_elements(const random::RandomGenerator& generator, at::IntArrayRef shape, double rate,
                     const at::TensorOptions& options);

// `x` of which elements are dropped with probability `rate`, and the others scaled up; drawn from
// the global generator.
Tensor dropped(const Tensor& x, double rate);

// Errors: InvalidArgument (a rate outside [0, 1]; names the layer and the option).
void check_rate(double rate, const char* layer, const char* option);

}  // namespace cohort::internal
