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
  std::string data_format = "channels_last";  // or "channels_first"
  int64_t dilation_rate = 1;                  // steps between the taps of a window
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

// Shapes: [batch, steps, channels] -> [batch, new_steps, filters], floating; the channels come
// before the steps with "channels_first".
// Weights: "kernel" [kernel_size, channels / groups, filters], "bias" [filters].
// Floating inputs are converted to the layer's dtype.
class COHORT_API Conv1D : public LayerHandle {
 public:
  // Errors: InvalidArgument (filters, groups, a size or a stride below 1; strides and dilation_rate
  // both above 1; padding; data_format; groups that do not divide the filters, or of its build the
  // channels).
  Conv1D(int64_t filters, int64_t kernel_size, Conv1DOptions options = {});
};

}  // namespace cohort::keras::layers
