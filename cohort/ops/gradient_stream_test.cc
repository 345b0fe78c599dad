#include "cohort/ops/gradient_stream.h"

#include <ATen/ops/equal.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>

#include "cohort/ops/gradient_tape.h"

namespace cohort::internal {
namespace {

using ::testing::ElementsAre;

Tensor leaf(at::IntArrayRef sizes) { return at::randn(sizes).set_requires_grad(true); }

// Three layers, the last of which is complete first.
Tensor loss_of(const std::vector<Tensor>& w) {
  return ((at::ones({2, 4}).matmul(w[0]).tanh().matmul(w[1])).tanh().matmul(w[2])).sum();
}

TEST(GradientStream, GivesTheTapesGradientsLastLayerFirst) {
  const std::vector<Tensor> weights{leaf({4, 4}), leaf({4, 4}), leaf({4, 1})};
  GradientStream stream(weights);
  for (int pass = 0; pass < 2; ++pass) {
    GradientTape tape({.persistent = true});
    const Tensor loss = loss_of(weights);
    const auto expected = tape.gradient(loss, weights);
    std::vector<size_t> order;
    stream.run(loss, [&](size_t i, const Tensor& gradient) {
      order.push_back(i);
      EXPECT_TRUE(at::equal(gradient, expected[i])) << i;
    });
    EXPECT_THAT(order, ElementsAre(2, 1, 0));
    for (const Tensor& weight : weights) EXPECT_FALSE(weight.grad().defined());
  }
}

TEST(GradientStream, ALeafUsedTwiceIsReadyOnce) {
  const std::vector<Tensor> weights{leaf({3})};
  GradientStream stream(weights);
  GradientTape tape;
  int calls = 0;
  const Tensor target = weights[0] * 2 + weights[0];
  tape.stop_recording();
  stream.run(target, [&](size_t, const Tensor& gradient) {
    ++calls;
    EXPECT_TRUE(at::equal(gradient, at::ones({3}) * 3));
  });
  EXPECT_EQ(calls, 1);
}

TEST(GradientStream, PassesOverWhatTheTargetDoesNotDependOn) {
  const std::vector<Tensor> leaves{leaf({2}), at::ones({2}), leaf({2})};
  GradientStream stream(leaves);
  GradientTape tape;
  std::vector<size_t> order;
  stream.run((leaves[2] * leaves[1]).sum(), [&](size_t i, const Tensor&) { order.push_back(i); });
  EXPECT_THAT(order, ElementsAre(2));
  stream.run(at::ones({}), [&](size_t, const Tensor&) { FAIL(); });
}

TEST(GradientStream, WhatTheReceiverThrowsEndsThePassAndTheNextOneIsWhole) {
  const std::vector<Tensor> weights{leaf({4, 4}), leaf({4, 4}), leaf({4, 1})};
  GradientStream stream(weights);
  GradientTape tape({.persistent = true});
  const Tensor first = loss_of(weights), second = loss_of(weights);
  EXPECT_THROW(stream.run(first, [](size_t, const Tensor&) { throw std::runtime_error("full"); }),
               std::runtime_error);
  const auto expected = tape.gradient(second, weights);
  stream.run(second, [&](size_t i, const Tensor& gradient) {
    EXPECT_TRUE(at::equal(gradient, expected[i])) << i;
  });
}

TEST(GradientStream, IsDeafToOtherPassesAndAfterItsEnd) {
  const std::vector<Tensor> weights{leaf({3})};
  {
    const GradientStream stream(weights);
    weights[0].sum().backward();
  }
  weights[0].sum().backward();
  EXPECT_TRUE(at::equal(weights[0].grad(), at::ones({3}) * 2));
}

}  // namespace
}  // namespace cohort::internal
