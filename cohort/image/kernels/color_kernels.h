// The loops of colors, over pixels of three numbers without gaps, on the calling thread;
// TensorFlow's formulas.
#pragma once

#include <cstdint>

namespace cohort::internal::image {

void rgb_to_hsv_pixels(const float* in, int64_t pixels, float* out);
void hsv_to_rgb_pixels(const float* in, int64_t pixels, float* out);
void adjust_hue_pixels(const float* in, int64_t pixels, float delta, float* out);
void adjust_saturation_pixels(const float* in, int64_t pixels, float factor, float* out);

}  // namespace cohort::internal::image
