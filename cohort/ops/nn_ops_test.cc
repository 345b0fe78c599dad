#include "cohort/ops/nn_ops.h"

#include <ATen/ops/ones.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "cohort/core/error.h"
#include "cohort/ops/gradient_tape.h"
#include "cohort/ops/make_tensor.h"
#include "cohort/ops/random.h"

namespace cohort {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::Pointwise;

std::vector<double> numbers_of(const Tensor& tensor) {
  const Tensor flat = tensor.detach().to(float64).contiguous().view({-1});
  return {flat.data_ptr<double>(), flat.data_ptr<double>() + flat.numel()};
}

// Values are those of TensorFlow 2.15.
TEST(NnOps, OrderAndShape) {
  const Tensor x = constant({{3., 1., 2.}, {0., 5., 4.}});
  EXPECT_THAT(numbers_of(cumsum(x, 1)), ElementsAre(3, 4, 6, 0, 5, 9));
  EXPECT_EQ(cumsum(constant({1, 2})).scalar_type(), int32);
  EXPECT_THAT(numbers_of(sort(x)), ElementsAre(1, 2, 3, 0, 4, 5));
  const auto [values, places] = top_k(x, 2);
  EXPECT_THAT(numbers_of(values), ElementsAre(3, 2, 5, 4));
  EXPECT_THAT(numbers_of(places), ElementsAre(0, 2, 1, 2));
  EXPECT_EQ(places.scalar_type(), int32);
  // The first of equal ones comes first, also of many.
  EXPECT_THAT(numbers_of(top_k(constant({1., 3., 1., 3., 3.}), 4).second), ElementsAre(1, 3, 4, 0));
  EXPECT_THAT(numbers_of(top_k(ones({200}), 3).second), ElementsAre(0, 1, 2));
  EXPECT_THAT(numbers_of(unstack(x, 1).at(2)), ElementsAre(2, 4));
  EXPECT_THAT(numbers_of(pad(constant({{1., 2.}}), {{1, 0}, {0, 1}}, 7)),
              ElementsAre(7, 7, 7, 1, 2, 7));
}

TEST(NnOps, Activations) {
  const Tensor x = constant({-2., 0., 1.});
  EXPECT_THAT(numbers_of(nn::relu(x)), ElementsAre(0, 0, 1));
  EXPECT_THAT(numbers_of(nn::leaky_relu(x)), Pointwise(DoubleNear(1e-6), {-0.4, 0., 1.}));
  EXPECT_THAT(numbers_of(nn::softplus(x)),
              Pointwise(DoubleNear(1e-6), {0.126928, 0.693147, 1.313262}));
  EXPECT_THAT(numbers_of(nn::softmax(x)),
              Pointwise(DoubleNear(1e-6), {0.035119, 0.259496, 0.705385}));
  EXPECT_NEAR(nn::log_softmax(x)[2].item<double>(), -0.349012, 1e-6);
}

TEST(NnOps, LossesOfLogits) {
  const Tensor logits = constant({{2., -1., 0.5}, {-100., 100., 0.}});
  const Tensor classes = constant({0, 2});
  const Tensor vectors = constant({{1., 0., 0.}, {0., 0., 1.}});
  const std::vector<double> expected = {0.241311, 100.};
  EXPECT_THAT(numbers_of(nn::sparse_softmax_cross_entropy_with_logits(classes, logits)),
              Pointwise(DoubleNear(1e-5), expected));
  EXPECT_THAT(numbers_of(nn::softmax_cross_entropy_with_logits(vectors, logits)),
              Pointwise(DoubleNear(1e-5), expected));
  EXPECT_THAT(numbers_of(nn::sigmoid_cross_entropy_with_logits(vectors, logits)),
              Pointwise(DoubleNear(1e-5), {0.126928, 0.313262, 0.974077, 0., 100., 0.693147}));
  EXPECT_NEAR(nn::l2_loss(constant({3., 4.})).item<double>(), 12.5, 1e-6);
}

// A network that begins with zeros has such logits.
TEST(NnOps, SigmoidCrossEntropyOfZeroHasSigmoidsGradient) {
  const Tensor x = constant({0., 0., 1., -1.});
  const Tensor y = constant({1., 0., 1., 0.});
  GradientTape second, tape;
  second.watch(x);
  tape.watch(x);
  const Tensor slope = tape.gradient(nn::sigmoid_cross_entropy_with_logits(y, x), x);
  EXPECT_THAT(numbers_of(slope), Pointwise(DoubleNear(1e-6), {-0.5, 0.5, -0.26894143, 0.26894143}));
  EXPECT_THAT(numbers_of(second.gradient(slope, x)),
              Pointwise(DoubleNear(1e-6), {0.25, 0.25, 0.19661194, 0.19661194}));
}

TEST(NnOps, SoftplusOfFloat64IsExact) {
  const Tensor x = constant({-21., 21., 35., 50.}).to(float64);
  EXPECT_THAT(numbers_of(nn::softplus(x) - x.relu()),
              Pointwise(DoubleNear(1e-14), {std::log1p(std::exp(-21.)), std::log1p(std::exp(-21.)),
                                            std::log1p(std::exp(-35.)), 0.}));
}

TEST(NnOps, GradientsStopAndFlow) {
  const Tensor x = constant({1., 2.});
  GradientTape tape;
  tape.watch(x);
  const Tensor y = (nn::l2_loss(x) + stop_gradient(x * 5).sum());
  EXPECT_THAT(numbers_of(tape.gradient(y, x)), ElementsAre(1, 2));
}

TEST(NnOps, DropoutKeepsTheMean) {
  random::set_seed(3);
  const Tensor x = nn::dropout(at::ones({200, 50}), 0.25);
  EXPECT_NEAR(x.mean().item<double>(), 1, 0.03);
  EXPECT_NEAR(x.max().item<double>(), 4. / 3, 1e-6);
  EXPECT_NEAR(x.eq(0).to(float64).mean().item<double>(), 0.25, 0.02);
}

TEST(NnOps, WhatDoesNotFitIsRefused) {
  const Tensor logits = constant({{1., 2.}});
  EXPECT_THROW(nn::sparse_softmax_cross_entropy_with_logits(constant({2}), logits),
               InvalidArgumentError);
  EXPECT_THROW(nn::sparse_softmax_cross_entropy_with_logits(constant({0.}), logits),
               InvalidArgumentError);
  EXPECT_THROW(nn::sigmoid_cross_entropy_with_logits(constant({1.}), logits), InvalidArgumentError);
  EXPECT_THROW(nn::dropout(logits, 1), InvalidArgumentError);
  EXPECT_THROW(nn::softmax(Tensor()), InvalidArgumentError);
  EXPECT_THROW(top_k(logits, 3), InvalidArgumentError);
  EXPECT_THROW(pad(logits, {{1, 1}}), InvalidArgumentError);
}

// Values are those of TensorFlow 2.15.
TEST(NnOps, MomentsAndNorms) {
  const Tensor x = constant({{1., 2., 3.}, {3., 6., 9.}});
  const auto [mean, variance] = nn::moments(x, {0});
  EXPECT_THAT(numbers_of(mean), ElementsAre(2, 4, 6));
  EXPECT_THAT(numbers_of(variance), ElementsAre(1, 4, 9));
  EXPECT_EQ(nn::moments(x, {0, 1}, {.keepdims = true}).second.sizes(), at::IntArrayRef({1, 1}));
  EXPECT_THROW(nn::moments(constant({1, 2}), {0}), InvalidArgumentError);
  EXPECT_THAT(numbers_of(nn::l2_normalize(constant({{3., 4.}, {0., 0.}}), {.axis = {1}})),
              Pointwise(DoubleNear(1e-6), {0.6, 0.8, 0., 0.}));
  EXPECT_THAT(numbers_of(nn::weighted_cross_entropy_with_logits(constant({1., 0.5, 0.}),
                                                                constant({1.5, -0.1, -10.}), 1.5)),
              Pointwise(DoubleNear(1e-6), {0.30211994, 0.88049585, 4.5776367e-05}));
}

}  // namespace
}  // namespace cohort
