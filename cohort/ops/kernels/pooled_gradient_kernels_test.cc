#include "cohort/ops/kernels/pooled_gradient_kernels.h"

#include <gtest/gtest.h>

#include <random>
#include <utility>
#include <vector>

#include "cohort/ops/kernels/max_pool_kernels.h"
#include "cohort/ops/kernels/vectors.h"

namespace cohort::internal::plan {
namespace {

constexpr PooledConvolution kPooledShapes[] = {
    {.height = 12,
     .width = 12,
     .channels = 32,
     .filters = 64,
     .pooled_height = 5,
     .pooled_width = 5},
    {.height = 7,
     .width = 9,
     .channels = 16,
     .filters = 3,
     .tile_height = 2,
     .tile_width = 3,
     .pooled_height = 2,
     .pooled_width = 2},
    {.height = 30,
     .width = 28,
     .channels = 48,
     .filters = 5,
     .pooled_height = 14,
     .pooled_width = 13},
};

// Whole numbers, so that sums are exact in any order.
std::vector<float> draw(std::mt19937& random, int64_t count) {
  std::vector<float> values(static_cast<size_t>(count));
  for (float& value : values) value = static_cast<float>(static_cast<int>(random() % 7) - 3);
  return values;
}

TEST(PooledGradientKernels, EqualTheirReferences) {
  for (const PooledConvolution& s : kPooledShapes) {
    std::mt19937 random(1);
    const int64_t pixels = s.height * s.width * s.channels;
    const int64_t weights = s.filters * 9 * s.channels;
    const std::vector<float> image = draw(random, pixels);
    const std::vector<float> kernel = draw(random, weights);
    const std::vector<float> gradient = draw(random, s.pooled_height * s.pooled_width * s.filters);
    std::vector<uint8_t> places(gradient.size());
    for (uint8_t& place : places) {
      const auto drawn = random() % static_cast<unsigned>(s.tile_height * s.tile_width + 2);
      place = static_cast<uint8_t>(drawn < 2 ? kNoPlace : drawn - 2);
    }

    std::vector<float> ours(kernel.size(), 1.f), theirs(kernel.size(), 1.f);
    add_pooled_kernel_gradient(s, image.data(), gradient.data(), places.data(), ours.data());
    add_pooled_kernel_gradient_reference(s, image.data(), gradient.data(), places.data(),
                                         theirs.data());
    EXPECT_EQ(ours, theirs);

    std::vector<float> our_image(image.size(), 1.f), their_image(image.size(), 1.f);
    pooled_image_gradient(s, kernel.data(), gradient.data(), places.data(), our_image.data());
    pooled_image_gradient_reference(s, kernel.data(), gradient.data(), places.data(),
                                    their_image.data());
    EXPECT_EQ(our_image, their_image);
  }
}

TEST(PooledGradientKernels, SumsOfMatricesAreTransposed) {
  for (const auto& [rows, columns] :
       {std::pair<int64_t, int64_t>{288, 64}, {64, 288}, {3, 144}, {144, 5}, {33, 47}, {1, 1}}) {
    std::mt19937 random(1);
    std::vector<std::vector<float>> matrices;
    std::vector<const float*> addresses;
    for (int i = 0; i < 3; ++i) {
      matrices.push_back(draw(random, rows * columns));
      addresses.push_back(matrices.back().data());
    }
    for (size_t count = 1; count <= matrices.size(); ++count) {
      std::vector<float> sum(matrices[0].size(), 1.f), expected(matrices[0].size(), 0.f);
      sum_transposed({addresses.data(), count}, rows, columns, sum.data());
      for (size_t m = 0; m < count; ++m) {
        for (int64_t i = 0; i < rows * columns; ++i) {
          expected[static_cast<size_t>(i % columns * rows + i / columns)] +=
              matrices[m][static_cast<size_t>(i)];
        }
      }
      EXPECT_EQ(sum, expected) << rows << " x " << columns;
    }
  }
}

TEST(PooledGradientKernels, AreForFullVectorsOfChannels) {
  PooledConvolution shape = kPooledShapes[0];
  shape.channels = kVector * 5 / 4;
  EXPECT_FALSE(has_kernels(shape));
  shape = kPooledShapes[0];
  shape.size = 5;
  EXPECT_FALSE(has_kernels(shape));
}

}  // namespace
}  // namespace cohort::internal::plan
