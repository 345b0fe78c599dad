// The densely connected layer: activation(x . kernel + bias).
//
//   layers::Dense(64, {.activation = "relu"});
#pragma once

#include <string>

#include "cohort/core/export.h"
#include "cohort/keras/base/activations.h"
#include "cohort/keras/layers/base/layer_handle.h"

namespace cohort::keras::layers {

struct DenseOptions {
  activations::Activation activation = {};
  bool use_bias = true;
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

// Shapes: [batch, .., features] -> [batch, .., units], floating.
// Weights: "kernel" [features, units], "bias" [units].
// Floating inputs are converted to the layer's dtype.
class COHORT_API Dense : public LayerHandle {
 public:
  // Errors: InvalidArgument (units below 1).
  explicit Dense(int64_t units, DenseOptions options = {});
};

}  // namespace cohort::keras::layers
