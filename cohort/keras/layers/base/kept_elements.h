// What dropout keeps. For sources of layers.
#pragma once

#include <string>

#include "cohort/core/structure/tensor.h"
#include "cohort/keras/layers/base/layer.h"
#include "cohort/ops/random.h"

namespace cohort::internal {

// 1 with probability 1 - rate, else 0. Shapes: `shape`, in the dtype and on the device of
// `options`.
Tensor kept_elements(const random::RandomGenerator& generator, at::IntArrayRef shape, double rate,
                     const at::TensorOptions& options);

// The shape of what is drawn for an input: `wanted` with the input's sizes in the place of
// kUnknownDim, or the input's where nothing is wanted.
// Errors: InvalidArgument (another rank; sizes that are neither 1 nor the input's).
keras::Shape noise_shape(const keras::Shape& wanted, at::IntArrayRef input,
                         const std::string& layer);

// `x` of which elements are dropped with probability `rate`, and the others scaled up; drawn from
// the global generator.
Tensor dropped(const Tensor& x, double rate);

// Errors: InvalidArgument (a rate outside [0, 1]; names the layer and the option).
void check_rate(double rate, const char* layer, const char* option);

}  // namespace cohort::internal
