// Three-dimensional transposed convolution, which makes volumes larger.
//
//   layers::Conv3DTranspose(8, 2, {.strides = 2});
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "cohort/core/export.h"
#include "cohort/keras/base/activations.h"
#include "cohort/keras/base/window.h"
#include "cohort/keras/layers/base/layer_handle.h"

namespace cohort::keras::layers {

struct Conv3DTransposeOptions {
  Size3D strides = 1;
  std::string padding = "valid";  // or "same"
  // How much larger volumes become than the windows need, each below its stride. Missing: as much
  // as makes new sizes those below.
  std::optional<Size3D> output_padding = std::nullopt;
  std::string data_format = "channels_last";  // or "channels_first"
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

// Each voxel is spread over a window; strides are of the windows.
// Shapes: [batch, depth, height, width, channels] -> [batch, .., filters], floating; with
// "channels_first" the channels come second.
// With padding "same" new sizes are the old ones times the strides, with "valid" those and what of
// the last window reaches further. With output_padding they are (old - 1) * strides + window +
// output_padding, less 2 * (window / 2) with "same".
// Weights: "kernel" [size.., filters, channels], "bias" [filters].
// Floating inputs are converted to the layer's dtype.
class COHORT_API Conv3DTranspose : public LayerHandle {
 public:
  // Errors: InvalidArgument (filters, a size or a stride below 1; padding; data_format; an
  // output_padding below 0, or not below its stride).
  Conv3DTranspose(int64_t filters, Size3D kernel_size, Conv3DTransposeOptions options = {});
};

}  // namespace cohort::keras::layers
