// The loops of a plan that are its own: over arrays without gaps, on the calling thread.
#pragma once

#include <cstdint>

#include "cohort/ops/plan/operation.h"

namespace cohort::internal::plan {

// What dropout gives: values where `kept` is 1 and 0 where it is 0, over `share`.
void drop(const float* values, const float* kept, float share, int64_t count, float* result);
// The means of windows of images, as operation.h's AveragePooling.
struct Averaging {
  int64_t height = 0;  // of an image
  int64_t width = 0;
  int64_t channels = 0;
  Size size{1, 1};
  Size strides{1, 1};
  Windows rows;
  Windows columns;
};
void average(const Averaging& averaging, int64_t images, const float* from, float* to);
// gradient: of the means; result: of the images.
void average_gradient(const Averaging& averaging, int64_t images, const float* gradient,
                      float* result);
// Adds each channel's sum over `rows` to sums[channels].
void add_column_sums(const float* values, int64_t rows, int64_t channels, double* sums);
void add(const float* values, int64_t count, float* to);
void scale(const float* values, float factor, int64_t count, float* to);
void add_scaled(const float* values, float factor, int64_t count, float* to);
void narrow(const double* values, int64_t count, float* to);

// Copies between images of `height` rows of `width` elements and their upper left part, or those
// pixels, of `pixel` elements each, that stand in every so many rows and columns.
struct Crop {
  int64_t height = 0;
  int64_t width = 0;
  int64_t kept_height = 0;
  int64_t kept_width = 0;
  int64_t pixel = 1;
  Size steps{1, 1};

  bool keeps_all() const { return height == kept_height && width == kept_width; }
};
void crop(const Crop& crop, int64_t images, const float* from, float* to);
// Puts zeros where `crop` left pixels out.
void uncrop(const Crop& crop, int64_t images, const float* from, float* to);

}  // namespace cohort::internal::plan
