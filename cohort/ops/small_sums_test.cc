#include "cohort/ops/small_sums.h"

#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/randn.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include "cohort/ops/gradient_tape.h"

namespace cohort::internal {
namespace {

using torch::autograd::grad;

// Small ones, and what is libtorch's: many numbers, float64, gaps.
std::vector<Tensor> sums_samples() {
  return {at::randn({}),        at::randn({7}),      at::randn({3, 4}),
          at::randn({0}),       at::randn({50, 50}), at::randn({5}, at::kDouble),
          at::randn({4, 3}).t()};
}

TEST(SmallSums, DividedSumEqualsLibtorch) {
  const GradientTape tape({.persistent = true});
  for (const Tensor& sample : sums_samples()) {
    const Tensor x = sample.requires_grad_();
    const Tensor ours = divided_sum(x, 4);
    const Tensor theirs = x.sum() / 4;
    EXPECT_EQ(ours.dim(), 0);
    EXPECT_EQ(ours.scalar_type(), x.scalar_type());
    EXPECT_TRUE(ours.allclose(theirs, 1e-5, 1e-6));
    EXPECT_TRUE(grad({ours * 3}, {x})[0].equal(at::full(x.sizes(), 0.75, x.options())));
  }
}

TEST(SmallSums, DividedSumHasGradientsOfGradients) {
  const GradientTape tape({.persistent = true});
  const Tensor x = at::randn({6}).requires_grad_();
  const Tensor first =
      grad({divided_sum(x * x, 2).square()}, {x}, {}, true, /*create_graph=*/true)[0];
  const Tensor second = grad({first.sum()}, {x})[0];
  const Tensor expected =
      grad({grad({((x * x).sum() * 0.5).square()}, {x}, {}, true, /*create_graph=*/true)[0].sum()},
           {x})[0];
  EXPECT_TRUE(second.allclose(expected, 1e-4, 1e-5));
}

TEST(SmallSums, SumOfTermsEqualsLibtorch) {
  const GradientTape tape({.persistent = true});
  for (const Tensor& sample : sums_samples()) {
    const Tensor a = sample.requires_grad_();
    const Tensor b = at::randn({}, a.options()).requires_grad_();
    const Tensor c = at::randn({}, a.options()).requires_grad_();
    const Tensor fixed = at::randn({2, 2}, a.options());
    const Tensor ours = sum_of_terms({{a, 4, 3}, {b, 2}, {c, 2}, {fixed, 1, 0.5}, {a}});
    const Tensor theirs = a.sum() / 4 * 3 + b / 2 + c / 2 + fixed.sum() * 0.5 + a.sum();
    EXPECT_EQ(ours.dim(), 0);
    EXPECT_EQ(ours.scalar_type(), a.scalar_type());
    EXPECT_TRUE(ours.allclose(theirs, 1e-5, 1e-5));
    const auto gradients = grad({ours * 2}, {a, b, c});
    EXPECT_TRUE(gradients[0].equal(at::full(a.sizes(), 3.5, a.options())));
    EXPECT_EQ(gradients[1].item<double>(), 1);
    EXPECT_EQ(gradients[2].item<double>(), 1);
  }
  const Tensor unused = at::randn({3}).requires_grad_();
  const Tensor used = at::randn({3}).requires_grad_();
  EXPECT_TRUE(grad({sum_of_terms({{unused}, {used, 2}})}, {used})[0].equal(at::full({3}, 0.5)));
}

TEST(SmallSums, SumOfTermsHasGradientsOfGradients) {
  const GradientTape tape({.persistent = true});
  const Tensor x = at::randn({6}).requires_grad_();
  const Tensor y = at::randn({}).requires_grad_();
  const auto second = [&](const Tensor& sum) {
    const auto first = grad({sum.square()}, {x, y}, {}, true, /*create_graph=*/true);
    return grad({first[0].square().sum() + first[1]}, {x, y});
  };
  const auto ours = second(sum_of_terms({{x * x, 2, 3}, {y * y, 5}}));
  const auto theirs = second((x * x).sum() / 2 * 3 + y * y / 5);
  for (size_t i = 0; i < ours.size(); ++i) {
    EXPECT_TRUE(ours[i].allclose(theirs[i], 1e-4, 1e-4));
  }
}

TEST(SmallSums, SumOfEqualsLibtorch) {
  const GradientTape tape({.persistent = true});
  for (const Tensor& sample : sums_samples()) {
    const Tensor a = sample.requires_grad_();
    const Tensor b = (sample.detach() + 1).requires_grad_();
    const Tensor c = sample.detach() * 2;
    const Tensor sum = sum_of({a, b, c, a});
    EXPECT_TRUE(sum.allclose(a + b + c + a, 1e-5, 1e-6));
    const auto gradients = grad({(sum * 3).sum()}, {a, b});
    EXPECT_TRUE(gradients[0].equal(at::full(a.sizes(), 6, a.options())));
    EXPECT_TRUE(gradients[1].equal(at::full(a.sizes(), 3, a.options())));
  }
  const Tensor one = at::randn({2});
  EXPECT_TRUE(sum_of({one}).is_same(one));
}

TEST(SmallSums, SumIfSmallGivesANumberOfFewFloatsOrBools) {
  const Tensor x = at::randn({3, 4});
  EXPECT_NEAR(sum_if_small(x).value(), x.sum().item<double>(), 1e-5);
  EXPECT_EQ(sum_if_small(x > 0).value(), (x > 0).sum().item<double>());
  EXPECT_EQ(sum_if_small(at::randn({0})).value(), 0);
  for (const Tensor& other : {x.t(), x.to(at::kDouble), at::randn({50, 50})}) {
    EXPECT_FALSE(sum_if_small(other).has_value());
  }
}

TEST(SmallSums, OnesHaveTheFormOfTheTensor) {
  for (const Tensor& like :
       {at::randn({}), at::randn({2, 3}).requires_grad_(), at::randn({0}), at::randn({2, 3}).t(),
        at::randn({2}, at::kDouble), at::randn({50, 50})}) {
    const Tensor ones = ones_of(like);
    EXPECT_TRUE(ones.equal(at::ones(like.sizes(), like.options())));
    EXPECT_EQ(ones.strides(), at::ones_like(like).strides());
    EXPECT_FALSE(ones.requires_grad());
    EXPECT_FALSE(ones.is_same(ones_of(like)));
  }
}

TEST(SmallSums, RecordNothingWithoutATape) {
  const GradientTape tape;
  const Tensor x = at::randn({3}).requires_grad_();
  const NoGradient no_gradient;
  EXPECT_FALSE(divided_sum(x, 2).requires_grad());
  EXPECT_FALSE(sum_of({x, x}).requires_grad());
}

}  // namespace
}  // namespace cohort::internal
