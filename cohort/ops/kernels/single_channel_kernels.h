// A convolution of images of one channel, with the bias, relu and two by two max-pooling that
// follow, two rows at a time: no library has it, and next to the products themselves the passes
// between them cost most. As loops for one example each; the references are what they
// compute, element by element.
#pragma once

#include <cstdint>

namespace cohort::internal::plan {

// Windows of size x size pixels, side by side without zeros around; a pooled pixel is the largest
// of four.
struct SingleChannel {
  int64_t width = 0;  // pixels from one row of the image to the next
  int64_t size = 3;
  int64_t filters = 0;
  int64_t pooled_height = 0;
  int64_t pooled_width = 0;
  bool relu = false;
};

// Whether there are loops for it, and they are faster than a library's on this processor: filters
// in full vectors, a size of 3 or 5, and registers for all taps.
bool has_kernels(const SingleChannel& shape);

int64_t scratch_size(const SingleChannel& shape);

// image: rows of `width` pixels; kernel: [size, size, filters]; bias: [filters] or nullptr;
// scratch: scratch_size elements. out, places: [pooled_height, pooled_width, filters], as
// max_pool_rows gives them.
void convolve_single_channel(const SingleChannel& shape, const float* image, const float* kernel,
                             const float* bias, float* scratch, float* out, uint8_t* places);
void convolve_single_channel_reference(const SingleChannel& shape, const float* image,
                                       const float* kernel, const float* bias, float* out,
                                       uint8_t* places);

// gradient: of `out`. Adds to that of the kernel, and to that of the bias unless it is nullptr.
void add_single_channel_gradients(const SingleChannel& shape, const float* image,
                                  const float* gradient, const uint8_t* places,
                                  float* kernel_gradient, double* bias_gradient);
void add_single_channel_gradients_reference(const SingleChannel& shape, const float* image,
                                            const float* gradient, const uint8_t* places,
                                            float* kernel_gradient, double* bias_gradient);

}  // namespace cohort::internal::plan
