#include "cohort/ops/kernels/winograd_kernels.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "cohort/ops/kernels/vectors.h"

namespace cohort::internal::plan {
namespace {

struct WinogradCase {
  Winograd shape;
  int64_t images = 1;
};

// Tiles that reach over the border, in one or both directions; no zeros around, or one row, or such
// as a gradient has; more tiles than are transformed together; panels of every width.
constexpr WinogradCase kCases[] = {
    {{.height = 12, .width = 12, .channels = 32, .out_height = 10, .out_width = 10, .filters = 64},
     3},
    {{.height = 5,
      .width = 4,
      .channels = 16,
      .rows_before = 1,
      .columns_before = 1,
      .out_height = 5,
      .out_width = 4,
      .filters = 16},
     4},
    {{.height = 3, .width = 9, .channels = 48, .out_height = 1, .out_width = 7, .filters = 80}, 2},
    {{.height = 11,
      .width = 14,
      .channels = 16,
      .rows_before = 1,
      .columns_before = 1,
      .out_height = 11,
      .out_width = 14,
      .filters = 112},
     2},
    {{.height = 4,
      .width = 6,
      .channels = 80,
      .rows_before = 2,
      .columns_before = 2,
      .out_height = 6,
      .out_width = 8,
      .filters = 96},
     1},
    {{.height = 4,
      .width = 4,
      .channels = 128,
      .rows_before = 1,
      .columns_before = 1,
      .out_height = 4,
      .out_width = 4,
      .filters = 128},
     5},
    {{.height = 20,
      .width = 23,
      .channels = 16,
      .rows_before = 1,
      .columns_before = 1,
      .out_height = 20,
      .out_width = 23,
      .filters = 32},
     7},
};

// Whole numbers, so that sums are exact in any order, and halves of halves, too.
std::vector<float> draw(std::mt19937& random, int64_t count) {
  std::vector<float> values(static_cast<size_t>(count));
  for (float& value : values) value = static_cast<float>(static_cast<int>(random() % 7) - 3);
  return values;
}

std::vector<float> memory(int64_t count) {
  return std::vector<float>(static_cast<size_t>(count), NAN);
}

std::vector<float> convolve(const Winograd& s, int64_t images, const std::vector<float>& in,
                            const std::vector<float>& transformed, const float* bias) {
  std::vector<float> scratch = memory(winograd_scratch_size(s, images));
  std::vector<float> out = memory(images * s.out_size());
  convolve_winograd(s, images, in.data(), transformed.data(), bias, scratch.data(), out.data());
  return out;
}

TEST(WinogradKernels, ConvolveAsTheirReference) {
  for (const auto& [s, images] : kCases) {
    std::mt19937 random(1);
    const std::vector<float> in = draw(random, images * s.in_size());
    const std::vector<float> kernel = draw(random, 9 * s.channels * s.filters);
    const std::vector<float> bias = draw(random, s.filters);
    std::vector<float> transformed = memory(transformed_kernel_size(s));
    transform_kernel(s, 0, 16, kernel.data(), transformed.data());
    transform_kernel(s, 16, s.channels, kernel.data(), transformed.data());
    for (const float* const added : {bias.data(), static_cast<const float*>(nullptr)}) {
      std::vector<float> expected = memory(images * s.out_size());
      convolve_reference(s, images, in.data(), kernel.data(), added, expected.data());
      EXPECT_EQ(convolve(s, images, in, transformed, added), expected);
    }
  }
}

// Of one example after the other as of all at once.
TEST(WinogradKernels, BitsDependOnNoOtherImage) {
  const Winograd& s = kCases[0].shape;
  std::mt19937 random(1);
  std::normal_distribution<float> numbers;
  std::vector<float> in(static_cast<size_t>(3 * s.in_size()));
  std::vector<float> kernel(static_cast<size_t>(9 * s.channels * s.filters));
  for (float& number : in) number = numbers(random);
  for (float& number : kernel) number = numbers(random);
  std::vector<float> transformed = memory(transformed_kernel_size(s));
  transform_kernel(s, 0, s.channels, kernel.data(), transformed.data());
  const std::vector<float> together = convolve(s, 3, in, transformed, nullptr);
  for (int64_t i = 0; i < 3; ++i) {
    const std::vector<float> one(in.begin() + i * s.in_size(), in.begin() + (i + 1) * s.in_size());
    const std::vector<float> alone = convolve(s, 1, one, transformed, nullptr);
    EXPECT_TRUE(std::equal(alone.begin(), alone.end(), together.begin() + i * s.out_size()));
  }
}

// The gradient of an image by its definition: what each of its pixels adds to.
std::vector<float> image_gradient(const Winograd& s, int64_t images,
                                  const std::vector<float>& kernel,
                                  const std::vector<float>& out_gradient) {
  // That of the kernel with flipped windows, and channels for filters.
  std::vector<float> flipped(kernel.size());
  for (int64_t tap = 0; tap < 9; ++tap) {
    for (int64_t c = 0; c < s.channels; ++c) {
      for (int64_t f = 0; f < s.filters; ++f) {
        flipped[static_cast<size_t>(((8 - tap) * s.filters + f) * s.channels + c)] =
            kernel[static_cast<size_t>((tap * s.channels + c) * s.filters + f)];
      }
    }
  }
  std::vector<float> gradient = memory(images * s.in_size());
  convolve_reference(s.of_gradient(), images, out_gradient.data(), flipped.data(), nullptr,
                     gradient.data());
  return gradient;
}

TEST(WinogradKernels, GiveGradientsAsTheirReferences) {
  for (const auto& [s, images] : kCases) {
    std::mt19937 random(1);
    const std::vector<float> in = draw(random, images * s.in_size());
    const std::vector<float> kernel = draw(random, 9 * s.channels * s.filters);
    const std::vector<float> out_gradient = draw(random, images * s.out_size());
    std::vector<float> transformed = memory(transformed_kernel_size(s));
    transform_kernel_for_gradient(s, 0, 16, kernel.data(), transformed.data());
    transform_kernel_for_gradient(s, 16, s.filters, kernel.data(), transformed.data());
    EXPECT_EQ(convolve(s.of_gradient(), images, out_gradient, transformed, nullptr),
              image_gradient(s, images, kernel, out_gradient));

    // The first image by itself, and the others in two sums.
    std::vector<float> scratch = memory(winograd_scratch_size(s, images));
    std::vector<float> first = memory(transformed_gradient_size(s));
    std::vector<float> second = first;
    sum_transformed_gradient(s, 1, in.data(), out_gradient.data(), false, scratch.data(),
                             first.data());
    sum_transformed_gradient(s, images - 1, in.data() + s.in_size(),
                             out_gradient.data() + s.out_size(), true, scratch.data(),
                             first.data());
    sum_transformed_gradient(s, images, in.data(), out_gradient.data(), false, scratch.data(),
                             second.data());
    std::vector<float> expected = memory(9 * s.channels * s.filters);
    kernel_gradient_reference(s, images, in.data(), out_gradient.data(), expected.data());
    std::vector<float> found = memory(9 * s.channels * s.filters);
    const float* const sums[] = {first.data(), second.data()};
    kernel_gradient(s, 0, 16, sums, found.data());
    kernel_gradient(s, 16, s.channels, sums, found.data());
    std::vector<float> twice = expected;
    for (float& number : twice) number *= 2;
    EXPECT_EQ(found, twice);

    const std::vector<float> zeros(static_cast<size_t>(std::max(s.channels, s.filters)));
    std::vector<float> batch = memory(transformed_batch_size(s, images));
    transform_batch(s, images, 1, images - 1, in.data() + s.in_size(),
                    out_gradient.data() + s.out_size(), zeros.data(), batch.data());
    transform_batch(s, images, 0, 1, in.data(), out_gradient.data(), zeros.data(), batch.data());
    scratch = memory(kernel_gradient_scratch_size());
    found = memory(9 * s.channels * s.filters);
    kernel_gradient_of_batch(s, images, 0, 16, batch.data(), scratch.data(), found.data());
    kernel_gradient_of_batch(s, images, 16, s.channels, batch.data(), scratch.data(), found.data());
    EXPECT_EQ(found, expected);
  }
}

TEST(WinogradKernels, AreForFullVectorsAndSomeTiles) {
  Winograd shape = kCases[0].shape;
  shape.channels = kVector * 3 / 2;
  EXPECT_FALSE(has_kernels(shape, 3));
  shape = kCases[0].shape;
  shape.filters = kVector * 5 / 2;
  EXPECT_FALSE(has_kernels(shape, 3));
  EXPECT_FALSE(has_kernels(kCases[2].shape, 3));
  EXPECT_EQ(has_kernels(kCases[2].shape, 4), has_kernels(kCases[0].shape, 3));
}

}  // namespace
}  // namespace cohort::internal::plan
