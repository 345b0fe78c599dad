// Two-dimensional transposed convolution, which makes images larger.
//
//   layers::Conv2DTranspose(16, 3, {.strides = 2, .padding = "same", .activation = "relu"});
#pragma once

#include "cohort/core/export.h"
#include "cohort/keras/layers/conv2d.h"

namespace cohort::keras::layers {

// Each pixel is spread over a window; strides and dilation_rate are of the windows.
// Shapes: [batch, height, width, channels] -> [batch, new_height, new_width, filters], floating. With
// padding "same" new sizes are the old ones times the strides, with "valid" those and what of the last
// window reaches further.
// Weights: "kernel" [kernel_height, kernel_width, filters, channels], "bias" [filters].
// Floating inputs are converted to the layer's dtype.
class COHORT_API Conv2DTranspose : public LayerHandle {
 public:
  // Errors: InvalidArgument (filters, a size or a stride below 1; padding).
  Conv2DTranspose(int64_t filters, Size2D kernel_size, Conv2DOptions options = {});
};

}  // namespace cohort::keras::layers
