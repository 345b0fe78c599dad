// Convolutions by windows of 3x3 pixels with fewer products: Winograd's F(2x2, 3x3) (Lavin and
// Gray, "Fast Algorithms for Convolutional Neural Networks", 2015). An image is taken by tiles of
// 4x4 pixels that overlap by two, and each makes 2x2 pixels of the result. Transformed, a tile and
// a kernel are multiplied number by number: 16 products for each channel and filter, where windows
// take 36. The transforms add, subtract and halve; a result loses one or two of its last bits more
// than by windows.
//
// As loops on the calling thread; the references are what they compute, window by window.
#pragma once

#include <cstdint>
#include <span>

#include "cohort/ops/kernels/winograd_shape.h"

namespace cohort::internal::plan {

// Whether there are loops for it, and they are faster than windows on this processor: channels and
// filters in full vectors, registers for as many sums, and tiles enough for what the transform of a
// kernel takes.
bool has_kernels(const Winograd& shape, int64_t images);

// A kernel as convolve_winograd reads it, for the convolution or for the gradient of its images.
// kernel: [3, 3, channels, filters]; makes the part of the channels (filters, for the gradient)
// from `first` to before `end`, whole vectors of them.
int64_t transformed_kernel_size(const Winograd& shape);
void transform_kernel(const Winograd& shape, int64_t first, int64_t end, const float* kernel,
                      float* transformed);
void transform_kernel_for_gradient(const Winograd& shape, int64_t first, int64_t end,
                                   const float* kernel, float* transformed);

// The scratch memory of those below, for as many images or fewer.
int64_t winograd_scratch_size(const Winograd& shape, int64_t images);
// in: [images, height, width, channels]; bias: [filters], or nullptr; out: [images, out_height,
// out_width, filters].
void convolve_winograd(const Winograd& shape, int64_t images, const float* in,
                       const float* transformed, const float* bias, float* scratch, float* out);
void convolve_reference(const Winograd& shape, int64_t images, const float* in, const float* kernel,
                        const float* bias, float* out);

// The gradient of the kernel, as sums over images that are transformed back once: of the channels
// from `first` to before `end` of [3, 3, channels, filters].
//
// Many tiles of few channels: each thread adds up the products of its images. adds: to what is
// there, which is overwritten otherwise.
int64_t transformed_gradient_size(const Winograd& shape);
void sum_transformed_gradient(const Winograd& shape, int64_t images, const float* in,
                              const float* out_gradient, bool adds, float* scratch, float* sum);
void kernel_gradient(const Winograd& shape, int64_t first, int64_t end,
                     std::span<const float* const> sums, float* gradient);
// Few tiles of many channels: all are transformed, image by image, then multiplied.
int64_t transformed_batch_size(const Winograd& shape, int64_t images);
// in, out_gradient: of `count` images, from image `first` on of the batch. zeros: as many as there
// are channels, or filters.
void transform_batch(const Winograd& shape, int64_t images, int64_t first, int64_t count,
                     const float* in, const float* out_gradient, const float* zeros,
                     float* transformed);
int64_t kernel_gradient_scratch_size();
void kernel_gradient_of_batch(const Winograd& shape, int64_t images, int64_t first, int64_t end,
                              const float* transformed, float* scratch, float* gradient);
void kernel_gradient_reference(const Winograd& shape, int64_t images, const float* in,
                               const float* out_gradient, float* gradient);

}  // namespace cohort::internal::plan
