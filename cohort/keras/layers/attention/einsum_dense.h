// A dense layer whose product is said by an einsum equation.
//
//   layers::EinsumDense("abc,cd->abd", {kUnknownDim, 64}, {.bias_axes = "d"});
//   layers::EinsumDense("...x,xy->...y", {64}, {.activation = "relu", .bias_axes = "y"});
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cohort/core/export.h"
#include "cohort/keras/base/activations.h"
#include "cohort/keras/layers/base/symbolic.h"

namespace cohort::keras::layers {

struct EinsumDenseOptions {
  activations::Activation activation = {};
  std::string bias_axes = "";  // letters of the output over which the bias differs; empty: no bias
  initializers::Initializer kernel_initializer = "glorot_uniform";
  initializers::Initializer bias_initializer = "zeros";
  regularizers::Regularizer kernel_regularizer = {};
  regularizers::Regularizer bias_regularizer = {};
  regularizers::Regularizer activity_regularizer = {};
  constraints::Constraint kernel_constraint = {};
  constraints::Constraint bias_constraint = {};
  std::optional<mixed_precision::Policy> dtype = std::nullopt;
  std::string name = "";
};

// activation(einsum(equation, x, kernel) + bias).
// Shapes: as the equation says, which has one of the forms "ab,bc->ac", "...ab,bc->...ac" and
// "ab...,bc->ac..."; its first letter, or the ellipsis before it, begins with the batch.
// Weights: "kernel", in the order of its letters; "bias", of the output's dimensions from the first
// of bias_axes on, 1 where it does not differ.
class COHORT_API EinsumDense : public LayerHandle {
 public:
  // output_shape: the sizes of the output's letters without the batch, nor what an ellipsis stands
  // for; kUnknownDim for those that the input has.
  // Errors: InvalidArgument (an equation of another form, or with a letter in the output or
  // bias_axes that stands nowhere else); of a call, too (sizes that differ, a kernel's size that
  // nothing says).
  EinsumDense(std::string equation, std::vector<int64_t> output_shape,
              EinsumDenseOptions options = {});
};

}  // namespace cohort::keras::layers
