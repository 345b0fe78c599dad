// Two-dimensional convolution.
//
//   layers::Conv2D(32, 3, {.activation = "relu", .kernel_regularizer = regularizers::L2(1e-5)});
//   layers::Conv2D(16, {3, 5}, {.strides = 2, .padding = "same"});
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "cohort/core/export.h"
#include "cohort/keras/base/activations.h"
#include "cohort/keras/base/window.h"
#include "cohort/keras/layers/base/layer_handle.h"

namespace cohort::keras::layers {

struct Conv2DOptions {
  Size2D strides = 1;                         // pixels between windows
  std::string padding = "valid";              // or "same": as many windows as ceil(pixels / stride)
  std::string data_format = "channels_last";  // or "channels_first"
  Size2D dilation_rate = 1;                   // pixels between the taps of a window
  int64_t groups = 1;  // of channels; the filters of a group see its channels alone
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

// Shapes: [batch, height, width, channels] -> [batch, new_height, new_width, filters], floating;
// the channels come before the pixels with "channels_first".
// Weights: "kernel" [kernel_height, kernel_width, channels / groups, filters], "bias" [filters].
// Floating inputs are converted to the layer's dtype.
class COHORT_API Conv2D : public LayerHandle {
 public:
  // Errors: InvalidArgument (filters, groups, a size or a stride below 1; strides and dilation_rate
  // both above 1; padding; data_format; groups that do not divide the filters, or of its build the
  // channels).
  Conv2D(int64_t filters, Size2D kernel_size, Conv2DOptions options = {});
};

}  // namespace cohort::keras::layers
