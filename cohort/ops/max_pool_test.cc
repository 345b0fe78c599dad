#include "cohort/ops/max_pool.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>
#include <ATen/ops/max_pool2d.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/randn.h>
#include <gtest/gtest.h>

#include <limits>

#include "cohort/ops/gradient_tape.h"

namespace cohort::internal {
namespace {

Tensor reference(const Tensor& images, Tile tile) {
  return at::max_pool2d(images.permute({0, 3, 1, 2}), {tile.height, tile.width})
      .permute({0, 2, 3, 1});
}

struct Pooling {
  at::DimVector sizes;
  Tile tile;
};
const Pooling kPoolings[] = {
    {{2, 8, 6, 5}, {2, 2}},  {{3, 7, 9, 33}, {2, 2}},    {{1, 11, 11, 64}, {2, 2}},
    {{2, 9, 10, 3}, {3, 2}}, {{2, 4, 4, 1}, {4, 4}},     {{1, 5, 5, 7}, {1, 1}},
    {{0, 4, 4, 3}, {2, 2}},  {{70, 26, 26, 32}, {2, 2}},
};

class MaxPoolTiles : public ::testing::TestWithParam<DType> {};

TEST_P(MaxPoolTiles, EqualsLibtorchsPoolingWithItsGradient) {
  for (const auto& [sizes, tile] : kPoolings) {
    const Tensor images = at::randn(sizes, GetParam());
    ASSERT_TRUE(can_max_pool_tiles(images, tile));
    GradientTape tape({.persistent = true});
    tape.watch(images);
    const Tensor ours = max_pool_tiles(images, tile);
    const Tensor theirs = reference(images, tile);
    ASSERT_TRUE(ours.equal(theirs)) << images.sizes();
    const Tensor weights = at::rand(ours.sizes(), GetParam());
    EXPECT_TRUE(tape.gradient((ours * weights).sum(), images)
                    .equal(tape.gradient((theirs * weights).sum(), images)))
        << images.sizes();
  }
}

TEST_P(MaxPoolTiles, OfEqualElementsTheFirstHasTheGradient) {
  GradientTape tape({.persistent = true});
  const Tensor images = at::full({1, 2, 2, 1}, 3, GetParam());
  tape.watch(images);
  EXPECT_TRUE(tape.gradient(max_pool_tiles(images, {2, 2}), images)
                  .equal(tape.gradient(reference(images, {2, 2}), images)));
}

TEST_P(MaxPoolTiles, NanWins) {
  Tensor images = at::full({1, 2, 2, 4}, -1, GetParam());
  for (int64_t place = 0; place < 4; ++place) {
    images[0][place / 2][place % 2][place] = std::numeric_limits<double>::quiet_NaN();
  }
  EXPECT_TRUE(max_pool_tiles(images, {2, 2}).isnan().all().item<bool>());
}

TEST_P(MaxPoolTiles, SecondAndThirdDerivatives) {
  const Tensor images = at::randn({2, 5, 4, 3}, GetParam());
  const auto third = [&](auto pool) {
    GradientTape outer({.persistent = true});
    outer.watch(images);
    Tensor value = pool(images * images * images, Tile{2, 2}).pow(3).sum();
    value = outer.gradient(value, images).pow(2).sum();
    value = outer.gradient(value, images).pow(2).sum();
    return outer.gradient(value, images).pow(2).sum();
  };
  const Tensor ours = third(max_pool_tiles);
  const Tensor theirs = third(reference);
  EXPECT_TRUE(ours.allclose(theirs, 1e-4)) << ours << theirs;
}

INSTANTIATE_TEST_SUITE_P(, MaxPoolTiles, ::testing::Values(float32, float64));

TEST(CanMaxPoolTiles, LeavesOthersToLibtorch) {
  EXPECT_FALSE(can_max_pool_tiles(at::rand({1, 4, 4, 1}, at::kHalf), {2, 2}));
  EXPECT_FALSE(can_max_pool_tiles(at::rand({1, 1, 4, 1}), {2, 2}));
  EXPECT_FALSE(can_max_pool_tiles(at::rand({4, 4, 1}), {2, 2}));
  EXPECT_FALSE(can_max_pool_tiles(at::rand({1, 32, 32, 1}), {16, 16}));
}

}  // namespace
}  // namespace cohort::internal
