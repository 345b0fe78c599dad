// Three-dimensional convolution, of volumes or short films.
//
//   layers::Conv3D(16, 3, {.activation = "relu"});
//   layers::Conv3D(8, {1, 3, 3}, {.strides = {1, 2, 2}, .padding = "same"});
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "cohort/core/export.h"
#include "cohort/keras/base/activations.h"
#include "cohort/keras/base/window.h"
#include "cohort/keras/layers/base/layer_handle.h"

namespace cohort::keras::layers {

struct Conv3DOptions {
  Size3D strides = 1;                         // voxels between windows
  std::string padding = "valid";              // or "same": as many windows as ceil(voxels / stride)
  std::string data_format = "channels_last";  // or "channels_first"
  Size3D dilation_rate = 1;                   // voxels between the taps of a window
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

// Shapes: [batch, depth, height, width, channels] -> [batch, .., filters], floating; the channels
// come before the voxels with "channels_first".
// Weights: "kernel" [kernel_depth, kernel_height, kernel_width, channels / groups, filters],
// "bias" [filters].
// Floating inputs are converted to the layer's dtype.
class COHORT_API Conv3D : public LayerHandle {
 public:
  // Errors: InvalidArgument (filters, groups, a size or a stride below 1; strides and dilation_rate
  // both above 1; padding; data_format; groups that do not divide the filters, or of its build the
  // channels).
  Conv3D(int64_t filters, Size3D kernel_size, Conv3DOptions options = {});
};

}  // namespace cohort::keras::layers
