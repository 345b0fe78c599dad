#include "cohort/ops/clip.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/sparse_coo_tensor.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "cohort/core/testing_errors.h"
#include "cohort/ops/gradient_tape.h"
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

// libtorch 1.13 drops the shape of its rows when it multiplies it.
TEST(Clip, ASparseGradientWithoutRowsKeepsItsForm) {
  const Tensor none = at::sparse_coo_tensor(at::empty({1, 0}, int64), at::empty({0, 2}), {5, 2});
  for (const Tensor& clipped :
       {clip_by_global_norm({constant({3., 4.}), none}, 1).first[1], clip_by_norm(none, 1)}) {
    EXPECT_EQ(clipped.sparse_dim(), 1);
    EXPECT_EQ(clipped._values().sizes(), at::IntArrayRef({0, 2}));
    EXPECT_EQ(clipped.sizes(), none.sizes());
  }
}

TEST(Clip, AGlobalNormThatIsNotFiniteMakesAllNaN) {
  for (const double element : {INFINITY, -INFINITY, NAN}) {
    const auto [clipped, norm] =
        clip_by_global_norm({constant({element, 2.}), constant({1.}), constant({0.})}, 1);
    for (const Tensor& tensor : clipped) EXPECT_TRUE(tensor.isnan().all().item<bool>());
    EXPECT_FALSE(norm.isfinite().item<bool>());
  }
  EXPECT_TRUE(
      clip_by_global_norm({constant({1.})}, 1, constant(INFINITY)).first[0].isnan().item<bool>());
}

// What TensorFlow 2.15 gives.
TEST(Clip, ANormThatIsNotFinite) {
  EXPECT_EQ(text(clip_by_norm(constant({INFINITY, -3., 0.}), 1)), "float32 [nan, -0.0, 0.0]");
  EXPECT_EQ(text(clip_by_norm(constant({-INFINITY, INFINITY, 2.}), 5)), "float32 [nan, nan, 0.0]");
  EXPECT_EQ(text(clip_by_norm(constant({3e38, -3e38}), 1)), "float32 [0.0, -0.0]");
  EXPECT_EQ(text(clip_by_norm(constant({NAN, 1., INFINITY}), 1)), "float32 [nan, nan, nan]");
}

TEST(Clip, OfZerosHasAGradient) {
  const Tensor zeros = constant({0., 0.}).requires_grad_();
  GradientTape tape;
  EXPECT_EQ(text(tape.gradient(clip_by_norm(zeros, 0.5), zeros)), "float32 [1.0, 1.0]");
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
  expect_error<InvalidArgumentError>([] { clip_by_norm(constant({1}), 1); }, "clip_by_norm needs");
  expect_error<InvalidArgumentError>([] { clip_by_norm(Tensor(), 1); }, "floating-point");
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
