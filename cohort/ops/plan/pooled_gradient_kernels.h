// Gradients of a convolution below max-pooling: of each window only the pixel that was largest has
// one, so that there is a fraction of the products of a dense gradient. As loops for one example
// each; the references are what they compute, element by element.
#pragma once

#include <cstdint>

namespace cohort::internal::plan {

// A convolution by windows of size x size pixels, side by side without zeros around, whose result
// is pooled by tiles.
struct PooledConvolution {
  int64_t height = 0;  // of the image that is convolved
  int64_t width = 0;
  int64_t channels = 0;
  int64_t size = 3;
  int64_t filters = 0;
  int64_t tile_height = 2;
  int64_t tile_width = 2;
  int64_t pooled_height = 0;
  int64_t pooled_width = 0;
};

// Whether there are loops for it, and they are faster than dense ones on this processor: channels
// in full vectors, a size of 3, and registers for all taps.
bool has_kernels(const PooledConvolution& shape);

// image: [height, width, channels]; gradient, places: [pooled_height, pooled_width, filters], of
// what max_pool_rows gave. Adds to that of the kernel, [filters, size, size, channels].
void add_pooled_kernel_gradient(const PooledConvolution& shape, const float* image,
                                const float* gradient, const uint8_t* places,
                                float* kernel_gradient);
void add_pooled_kernel_gradient_reference(const PooledConvolution& shape, const float* image,
                                          const float* gradient, const uint8_t* places,
                                          float* kernel_gradient);

// kernel: [filters, size, size, channels]. image_gradient: [height, width, channels], overwritten.
void pooled_image_gradient(const PooledConvolution& shape, const float* kernel,
                           const float* gradient, const uint8_t* places, float* image_gradient);
void pooled_image_gradient_reference(const PooledConvolution& shape, const float* kernel,
                                     const float* gradient, const uint8_t* places,
                                     float* image_gradient);

}  // namespace cohort::internal::plan
