// Convolutions in which each channel has kernels of its own.
//
//   layers::DepthwiseConv2D(3, {.padding = "same", .depth_multiplier = 2});
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "cohort/core/export.h"
#include "cohort/keras/base/activations.h"
#include "cohort/keras/base/window.h"
#include "cohort/keras/layers/base/layer_handle.h"

namespace cohort::keras::layers {

struct DepthwiseConv1DOptions {
  int64_t strides = 1;
  std::string padding = "valid";              // or "same"
  int64_t depth_multiplier = 1;               // outputs of each channel
  std::string data_format = "channels_last";  // or "channels_first"
  int64_t dilation_rate = 1;
  activations::Activation activation = {};
  bool use_bias = true;
  initializers::Initializer depthwise_initializer = "glorot_uniform";
  initializers::Initializer bias_initializer = "zeros";
  regularizers::Regularizer depthwise_regularizer = {};
  regularizers::Regularizer bias_regularizer = {};
  regularizers::Regularizer activity_regularizer = {};
  constraints::Constraint depthwise_constraint = {};
  constraints::Constraint bias_constraint = {};
  std::optional<mixed_precision::Policy> dtype = std::nullopt;
  std::string name = "";
};

struct DepthwiseConv2DOptions {
  Size2D strides = 1;
  std::string padding = "valid";              // or "same"
  int64_t depth_multiplier = 1;               // outputs of each channel
  std::string data_format = "channels_last";  // or "channels_first"
  Size2D dilation_rate = 1;
  activations::Activation activation = {};
  bool use_bias = true;
  initializers::Initializer depthwise_initializer = "glorot_uniform";
  initializers::Initializer bias_initializer = "zeros";
  regularizers::Regularizer depthwise_regularizer = {};
  regularizers::Regularizer bias_regularizer = {};
  regularizers::Regularizer activity_regularizer = {};
  constraints::Constraint depthwise_constraint = {};
  constraints::Constraint bias_constraint = {};
  std::optional<mixed_precision::Policy> dtype = std::nullopt;
  std::string name = "";
};

// Shapes: [batch, steps, channels] -> [batch, new_steps, channels * depth_multiplier], floating;
// with "channels_first" the channels come second. All outputs of a channel lie together.
// Weights: "depthwise_kernel" [kernel_size, channels, depth_multiplier], "bias" [channels *
// depth_multiplier].
// Errors (constructors): InvalidArgument (a number below 1; strides and dilation_rate both above 1;
// padding; data_format).
class COHORT_API DepthwiseConv1D : public LayerHandle {
 public:
  explicit DepthwiseConv1D(int64_t kernel_size, DepthwiseConv1DOptions options = {});
};
// The same for images: [batch, height, width, channels], and of kernels [kernel_height,
// kernel_width, channels, depth_multiplier].
class COHORT_API DepthwiseConv2D : public LayerHandle {
 public:
  explicit DepthwiseConv2D(Size2D kernel_size, DepthwiseConv2DOptions options = {});
};

}  // namespace cohort::keras::layers
