// The sizes of a convolution that Winograd's loops compute.
#pragma once

#include <cstdint>

namespace cohort::internal::plan {

// A convolution by windows of 3x3 pixels, side by side.
struct Winograd {
  int64_t height = 0;  // of an image
  int64_t width = 0;
  int64_t channels = 0;
  int64_t rows_before = 0;     // of zeros: above the image,
  int64_t columns_before = 0;  // to its left; below and to its right are as many as windows reach
  int64_t out_height = 0;
  int64_t out_width = 0;
  int64_t filters = 0;

  int64_t in_size() const { return height * width * channels; }
  int64_t out_size() const { return out_height * out_width * filters; }
  int64_t tile_rows() const { return (out_height + 1) / 2; }
  int64_t tile_columns() const { return (out_width + 1) / 2; }
  // The transform of the gradient of its result, which gives the gradient of its images.
  Winograd of_gradient() const {
    return {.height = out_height,
            .width = out_width,
            .channels = filters,
            .rows_before = 2 - rows_before,
            .columns_before = 2 - columns_before,
            .out_height = height,
            .out_width = width,
            .filters = channels};
  }
};

}  // namespace cohort::internal::plan
