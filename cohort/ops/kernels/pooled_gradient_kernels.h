// Gradients of a convolution below max-pooling: of each window only the pixel that was largest has
// one, so that there is a fraction of the products of a dense gradient. As loops for one example
// each; the references are what they compute, element by element.
#pragma once

#include <cstdint>
#include <span>

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

// to[c][r] = the sum of matrix[r][c] over the matrices, in their order. Shapes: [rows, columns]
// each -> [columns, rows]. What brings kernels into the layout above and their gradients back.
void sum_transposed(std::span<const float* const> matrices, int64_t rows, int64_t columns,
                    float* to);

}  // namespace cohort::internal::plan
