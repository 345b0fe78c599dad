// Convolutions of each channel by itself, then of all channels of each pixel.
//
//   layers::SeparableConv2D(32, 3, {.padding = "same", .activation = "relu"});
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "cohort/core/export.h"
#include "cohort/keras/base/activations.h"
#include "cohort/keras/base/window.h"
#include "cohort/keras/layers/base/layer_handle.h"

namespace cohort::keras::layers {

struct SeparableConv1DOptions {
  int64_t strides = 1;
  std::string padding = "valid";              // or "same", or "causal", as of Conv1D
  std::string data_format = "channels_last";  // or "channels_first"
  int64_t dilation_rate = 1;
  int64_t depth_multiplier = 1;  // outputs of each channel, before they are mixed
  activations::Activation activation = {};
  bool use_bias = true;
  initializers::Initializer depthwise_initializer = "glorot_uniform";
  initializers::Initializer pointwise_initializer = "glorot_uniform";
  initializers::Initializer bias_initializer = "zeros";
  regularizers::Regularizer depthwise_regularizer = {};
  regularizers::Regularizer pointwise_regularizer = {};
  regularizers::Regularizer bias_regularizer = {};
  regularizers::Regularizer activity_regularizer = {};
  constraints::Constraint depthwise_constraint = {};
  constraints::Constraint pointwise_constraint = {};
  constraints::Constraint bias_constraint = {};
  std::optional<mixed_precision::Policy> dtype = std::nullopt;
  std::string name = "";
};

struct SeparableConv2DOptions {
  Size2D strides = 1;
  std::string padding = "valid";              // or "same"
  std::string data_format = "channels_last";  // or "channels_first"
  Size2D dilation_rate = 1;
  int64_t depth_multiplier = 1;  // outputs of each channel, before they are mixed
  activations::Activation activation = {};
  bool use_bias = true;
  initializers::Initializer depthwise_initializer = "glorot_uniform";
  initializers::Initializer pointwise_initializer = "glorot_uniform";
  initializers::Initializer bias_initializer = "zeros";
  regularizers::Regularizer depthwise_regularizer = {};
  regularizers::Regularizer pointwise_regularizer = {};
  regularizers::Regularizer bias_regularizer = {};
  regularizers::Regularizer activity_regularizer = {};
  constraints::Constraint depthwise_constraint = {};
  constraints::Constraint pointwise_constraint = {};
  constraints::Constraint bias_constraint = {};
  std::optional<mixed_precision::Policy> dtype = std::nullopt;
  std::string name = "";
};

// Shapes: [batch, steps, channels] -> [batch, new_steps, filters], floating; with "channels_first"
// the channels come second.
// Weights: "depthwise_kernel" [kernel_size, channels, depth_multiplier], "pointwise_kernel" [1,
// channels * depth_multiplier, filters], "bias" [filters].
// Errors (constructors): InvalidArgument (a number below 1; strides and dilation_rate both above 1;
// padding; data_format).
class COHORT_API SeparableConv1D : public LayerHandle {
 public:
  SeparableConv1D(int64_t filters, int64_t kernel_size, SeparableConv1DOptions options = {});
};
// The same for images [batch, height, width, channels]; kernels have one more dimension.
class COHORT_API SeparableConv2D : public LayerHandle {
 public:
  SeparableConv2D(int64_t filters, Size2D kernel_size, SeparableConv2DOptions options = {});
};

}  // namespace cohort::keras::layers
