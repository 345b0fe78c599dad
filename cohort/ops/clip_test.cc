#include "cohort/ops/clip.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "cohort/core/testing_errors.h"
#include "cohort/ops/make_tensor.h"
#include "cohort/ops/testing_text.h"

namespace cohort {
namespace {

using internal::expect_error;

TEST(Clip, ByGlobalNorm) {
  const std::vector<Tensor> gradients = {constant({3., 0.}), Tensor(), constant({{4.}})};
  const auto [clipped, norm] = clip_by_global_norm(gradients, 1);
  EXPECT_EQ(text(norm), "float32 5.0");
  EXPECT_TRUE(clipped[0].allclose(constant({0.6, 0.})));
  EXPECT_FALSE(clipped[1].defined());
  EXPECT_TRUE(clipped[2].allclose(constant({{0.8}})));
  const auto [same, small] = clip_by_global_norm(gradients, 10);
  EXPECT_TRUE(same[0].equal(gradients[0]));
  EXPECT_TRUE(
      clip_by_global_norm(gradients, 1, constant(2.)).first[0].allclose(constant({1.5, 0.})));
  EXPECT_TRUE(clip_by_norm(constant({3., 4.}), 0.5).allclose(constant({0.3, 0.4})));
}

TEST(Clip, WhatIsNotFiniteMakesAllNaN) {
  const auto [clipped, norm] = clip_by_global_norm({constant({INFINITY}), constant({1.})}, 1);
  EXPECT_TRUE(clipped[0].isnan().all().item<bool>());
  EXPECT_TRUE(clipped[1].isnan().all().item<bool>());
}

TEST(Clip, RowsOfASparseGradient) {
  const Tensor sparse = constant({{0., 0.}, {3., 4.}}).to_sparse(1);
  EXPECT_EQ(text(global_norm({sparse})), "float32 5.0");
  EXPECT_TRUE(clip_by_norm(sparse, 1).to_dense().allclose(constant({{0., 0.}, {0.6, 0.8}})));
}

TEST(Clip, RefusesWhatHasNoNorm) {
  expect_error<InvalidArgumentError>([] { global_norm({}); }, "of no tensor");
  expect_error<InvalidArgumentError>([] { global_norm({constant({1})}); }, "floating-point");
  expect_error<InvalidArgumentError>([] { clip_by_norm(constant({1.}), 0); }, "above 0");
}

TEST(Count, Classes) {
  EXPECT_EQ(text(math::bincount(constant({1, 1, 3}))), "int64 [0, 2, 0, 1]");
  EXPECT_EQ(text(math::bincount(constant({1}), 3)), "int64 [0, 1, 0]");
  EXPECT_EQ(text(math::confusion_matrix(constant({0, 1, 1}), constant({0, 1, 0}))),
            "int32 [[1, 0], [1, 1]]");
  EXPECT_EQ(math::confusion_matrix(constant({0}), constant({0}), 3).sizes(),
            (std::vector<int64_t>{3, 3}));
  expect_error<InvalidArgumentError>(
      [] { math::confusion_matrix(constant({5}), constant({0}), 3); }, "5 is outside of [0, 3)");
  expect_error<InvalidArgumentError>(
      [] {
        math::confusion_matrix(constant({5}), constant({0, 1}));
      },
      "the predictions");
  expect_error<InvalidArgumentError>([] { math::bincount(constant({1.})); }, "needs integers");
}

}  // namespace
}  // namespace cohort
