// What dropout keeps. For sources of layers.
#pragma once

#include "cohort/core/tensor.h"
#include "cohort/ops/random.h"

namespace cohort::internal {

// 1 with probability 1 - rate, else 0. Shapes: `shape`, in the dtype and on the device of `like`.
Tensor kept_elements(const random::RandomGenerator& generator, const std::vector<int64_t>& shape,
                     double rate, const Tensor& like);

// Errors: InvalidArgument (a rate outside [0, 1]; names the layer and the option).
void check_rate(double rate, const char* layer, const char* option);

}  // namespace cohort::internal
