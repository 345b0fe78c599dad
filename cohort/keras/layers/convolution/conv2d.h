// Two-dimensional convolution.
//
//   layers::Conv2D(32, 3, {.activation = "relu", .kernel_regularizer = regularizers::L2(1e-5)});
//   layers::Conv2D(16, {3, 5}, {.strides = 2, .padding = "same"});
#pragma once

#include <string>

#include "cohort/core/export.h"
#include "cohort/keras/base/activations.h"
#include "cohort/keras/base/window.h"
#include "cohort/keras/layers/base/layer_handle.h"

namespace cohort::keras::layers {

struct Conv2DOptions {
  Size2D strides = 1;             // pixels between windows
  std::string padding = "valid";  // or "same": as many windows as ceil(pixels / stride)
  Size2D dilation_rate = 1;       // pixels between the taps of a window
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

// Shapes: [batch, height, width, channels] -> [batch, new_height, new_width, filters], floating.
// Weights: "kernel" [kernel_height, kernel_width, channels, filters], "bias" [filters].
// Floating inputs are converted to the layer's dtype.
class COHORT_API Conv2D : public LayerHandle {
 public:
  // Errors: InvalidArgument (filters, a size or a stride below 1; strides and dilation_rate both
  // above 1; padding).
  Conv2D(int64_t filters, Size2D kernel_size, Conv2DOptions options = {});
};

}  // namespace cohort::keras::layers
