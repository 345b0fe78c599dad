// Convolution over the steps of a sequence.
//
//   layers::Conv1D(32, 3, {.padding = "causal", .activation = "relu"});
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "cohort/core/export.h"
#include "cohort/keras/base/activations.h"
#include "cohort/keras/layers/base/layer_handle.h"

namespace cohort::keras::layers {

struct Conv1DOptions {
  int64_t strides = 1;  // steps between windows
  // "same": as many windows as ceil(steps / stride); "causal": also, but no window sees later
  // steps.
  std::string padding = "valid";
  int64_t dilation_rate = 1;  // steps between the taps of a window
  activations::Activation activation = {};
  bool use_bias = true;
  initializers::Initializer kernel_initializer = "glorot_uniform";
  initializers::Initializer bias_initializer = "zeros";
  regularizers::Regularizer kernel_regularizer = {};
  regularizers::Regularizer bias_regularizer = {};
  regularizers::Regularizer activity_regularizer = {};
  std::optional<mixed_precision::Policy> dtype = std::nullopt;
  std::string name = "";
};

// Shapes: [batch, steps, channels] -> [batch, new_steps, filters], floating.
// Weights: "kernel" [kernel_size, channels, filters], "bias" [filters].
// Floating inputs are converted to the layer's dtype.
class COHORT_API Conv1D : public LayerHandle {
 public:
  // Errors: InvalidArgument (filters, a size or a stride below 1; strides and dilation_rate both
  // above 1; padding).
  Conv1D(int64_t filters, int64_t kernel_size, Conv1DOptions options = {});
};

}  // namespace cohort::keras::layers
