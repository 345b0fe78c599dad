#include "cohort/ops/class_rows.h"

#include <ATen/ops/full.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/nll_loss.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <cmath>
#include <limits>

#include "cohort/ops/gradient_tape.h"

namespace cohort::internal {
namespace {

using torch::autograd::grad;

Tensor libtorch_crossentropy(const Tensor& labels, const Tensor& logits) {
  const Tensor rows = at::log_softmax(logits.reshape({labels.numel(), logits.size(-1)}), 1);
  return at::nll_loss(rows, labels.to(at::kLong).reshape({-1}), {}, at::Reduction::None)
      .reshape(labels.sizes());
}

TEST(CrossentropyOfRows, EqualsLibtorchInValuesAndGradients) {
  const GradientTape tape({.persistent = true});
  for (const at::ScalarType dtype : {at::kByte, at::kInt, at::kLong}) {
    for (const std::vector<int64_t>& shape :
         {std::vector<int64_t>{8, 10}, {3, 5, 2}, {4, 1}, {7}}) {
      const Tensor logits = (at::randn(shape) * 5).requires_grad_();
      const std::vector<int64_t> rows(shape.begin(), shape.end() - 1);
      const Tensor labels = at::randint(shape.back(), rows).to(dtype);
      ASSERT_TRUE(are_small_class_rows(labels, logits));
      const Tensor ours = crossentropy_of_rows(labels, logits);
      const Tensor theirs = libtorch_crossentropy(labels, logits.to(at::kDouble));
      ASSERT_EQ(ours.sizes(), theirs.sizes());
      EXPECT_TRUE(ours.to(at::kDouble).allclose(theirs, 1e-6, 1e-6));
      const Tensor outer = at::randn(rows);
      const Tensor gradient = grad({ours}, {logits}, {outer}, true)[0];
      const Tensor expected = grad({theirs}, {logits}, {outer.to(at::kDouble)})[0];
      EXPECT_TRUE(gradient.allclose(expected, 1e-5, 1e-6));
    }
  }
}

TEST(CrossentropyOfRows, HasGradientsOfGradients) {
  const GradientTape tape({.persistent = true});
  const Tensor logits = at::randn({6, 4}).requires_grad_();
  const Tensor labels = at::randint(4, {6});
  const auto second = [&](const Tensor& losses) {
    const Tensor first =
        grad({losses.square().sum()}, {logits}, {}, true, /*create_graph=*/true)[0];
    return grad({first.square().sum()}, {logits})[0];
  };
  EXPECT_TRUE(second(crossentropy_of_rows(labels, logits))
                  .allclose(second(libtorch_crossentropy(labels, logits)), 1e-4, 1e-5));
}

TEST(CrossentropyOfRows, TakesTensorsWithGaps) {
  const Tensor logits = at::randn({10, 6}).t();
  const Tensor labels = at::randint(10, {12}).slice(0, 0, 12, 2);
  EXPECT_TRUE(crossentropy_of_rows(labels, logits)
                  .allclose(libtorch_crossentropy(labels, logits), 1e-5, 1e-6));
}

TEST(CrossentropyOfRows, ExtremeLogits) {
  const float infinity = std::numeric_limits<float>::infinity();
  const Tensor logits = at::tensor({1e30f, -1e30f, 0.f, -infinity, 3.f, 3.f}).reshape({3, 2});
  const Tensor losses = crossentropy_of_rows(at::zeros({3}, at::kLong), logits);
  EXPECT_EQ(losses[0].item<float>(), 0);
  EXPECT_EQ(losses[1].item<float>(), 0);
  EXPECT_NEAR(losses[2].item<float>(), std::log(2.f), 1e-6);
  const Tensor unknown = at::tensor({1.f, std::nanf("")}).reshape({1, 2});
  EXPECT_TRUE(std::isnan(crossentropy_of_rows(at::zeros({1}, at::kLong), unknown).item<float>()));
}

TEST(CrossentropyOfRows, IsUndefinedWhereALabelIsNoClass) {
  for (const int64_t label : {-1, 3}) {
    EXPECT_FALSE(
        crossentropy_of_rows(at::tensor({int64_t{0}, label}), at::randn({2, 3})).defined());
  }
}

TEST(CrossentropyOfRows, RefusesLogitsThatWereChangedInPlace) {
  const GradientTape tape;
  const Tensor source = at::randn({2, 3}).requires_grad_();
  Tensor logits = source * 2;
  const Tensor loss = crossentropy_of_rows(at::zeros({2}, at::kLong), logits).sum();
  logits.add_(1);
  EXPECT_THROW(grad({loss}, {source}), c10::Error);
}

// The new ones need be no classes: a gradient by them would be written anywhere.
TEST(CrossentropyOfRows, RefusesLabelsThatWereChangedInPlace) {
  const GradientTape tape({.persistent = true});
  const Tensor logits = at::randn({2, 3}).requires_grad_();
  for (const int64_t label : {int64_t{2}, int64_t{1} << 40}) {
    Tensor labels = at::zeros({2}, at::kLong);
    const Tensor loss = crossentropy_of_rows(labels, logits).sum();
    labels.fill_(label);
    EXPECT_THROW(grad({loss}, {logits}, {}, true), c10::Error);
    EXPECT_THROW(grad({loss}, {logits}, {}, true, /*create_graph=*/true), c10::Error);
  }
}

TEST(MatchesOfRows, EqualLibtorch) {
  const float unknown = std::nanf("");
  const Tensor values =
      at::tensor({1.f, 3.f, 3.f, 5.f, unknown, 6.f, unknown, unknown, 7.f, -2.f, -3.f, -1.f})
          .reshape({2, 2, 3});
  for (int64_t label = -1; label < 4; ++label) {
    const Tensor labels = at::full({2, 2}, label, at::kLong);
    EXPECT_TRUE(matches_of_rows(labels, values).equal(values.argmax(-1) == labels)) << label;
  }
  const Tensor many = at::randn({50, 6}).t();
  const Tensor labels = at::randint(50, {6}).to(at::kByte);
  EXPECT_TRUE(matches_of_rows(labels, many).equal(many.argmax(-1) == labels));
}

TEST(CrossentropyOfRows, LeavesTheRestToLibtorch) {
  EXPECT_FALSE(are_small_class_rows(at::zeros({2}), at::randn({2, 3})));
  EXPECT_FALSE(are_small_class_rows(at::zeros({3}, at::kLong), at::randn({2, 3})));
  EXPECT_FALSE(are_small_class_rows(at::zeros({}, at::kLong), at::randn({})));
  EXPECT_FALSE(are_small_class_rows(at::zeros({2}, at::kLong), at::randn({2, 3}, at::kDouble)));
  EXPECT_FALSE(are_small_class_rows(at::zeros({2}, at::kLong), at::randn({2, 50'000})));
}

}  // namespace
}  // namespace cohort::internal
