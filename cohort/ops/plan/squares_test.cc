#include "cohort/ops/plan/squares.h"

#include <ATen/ops/randn.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <limits>

#include "cohort/core/cpu/intra_op_threads.h"
#include "cohort/ops/gradient_tape.h"

namespace cohort::internal {
namespace {

using torch::autograd::grad;

TEST(SumOfSquares, EqualsLibtorchInValuesAndGradients) {
  const GradientTape tape({.persistent = true});
  const std::vector<Tensor> samples = {at::randn({}),
                                       at::randn({0}),
                                       at::randn({63}),
                                       at::randn({64}),
                                       at::randn({2047}),
                                       at::randn({2049}),
                                       at::randn({70, 1000}),
                                       at::randn({4, 3}).t(),
                                       at::randn({5}, at::kDouble),
                                       at::randn({3, 2, 7}),
                                       at::randn({100'003}) * 1e3};
  for (const Tensor& sample : samples) {
    const Tensor x = sample.requires_grad_();
    const Tensor wide = sample.detach().to(at::kDouble).requires_grad_();
    const Tensor ours = sum_of_squares(x, 0.75);
    const Tensor theirs = wide.square().sum() * 0.75;
    EXPECT_EQ(ours.dim(), 0);
    EXPECT_EQ(ours.scalar_type(), x.scalar_type());
    EXPECT_TRUE(ours.to(at::kDouble).allclose(theirs, 1e-6, 0)) << x.sizes();
    EXPECT_TRUE(
        grad({ours * 3}, {x})[0].to(at::kDouble).allclose(grad({theirs * 3}, {wide})[0], 1e-6, 0));
  }
}

TEST(SumOfSquares, IsTheSameOnAnyNumberOfThreads) {
  const Tensor x = at::randn({300'001});
  const auto sum_on = [&](int threads) {
    const ScopedIntraOpThreads scope(threads);
    return add_squares(x.data_ptr<float>(), x.numel());
  };
  for (const int threads : {2, 3, 4}) EXPECT_EQ(sum_on(threads), sum_on(1));
}

TEST(SumOfSquares, HasGradientsOfGradients) {
  const GradientTape tape({.persistent = true});
  const Tensor x = at::randn({6}).requires_grad_();
  const auto second = [&](const Tensor& sum) {
    return grad({grad({sum.square()}, {x}, {}, true, /*create_graph=*/true)[0].sum()}, {x})[0];
  };
  EXPECT_TRUE(second(sum_of_squares(x, 0.5)).allclose(second(x.square().sum() * 0.5), 1e-4, 1e-5));
}

TEST(SumOfSquares, RecordsNothingWithoutATape) {
  const GradientTape tape;
  const Tensor x = at::randn({3}).requires_grad_();
  EXPECT_FALSE(sum_of_squares(x.detach(), 1).requires_grad());
  const NoGradient no_gradient;
  EXPECT_FALSE(sum_of_squares(x, 1).requires_grad());
}

TEST(SumOfSquares, RefusesNumbersThatWereChangedInPlace) {
  const GradientTape tape;
  const Tensor source = at::randn({3}).requires_grad_();
  Tensor x = source * 2;
  const Tensor sum = sum_of_squares(x, 1);
  x.add_(1);
  EXPECT_THROW(grad({sum}, {source}), c10::Error);
}

TEST(SumOfSquares, KeepsWhatIsNoNumber) {
  const float infinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(sum_of_squares(at::tensor({1.f, -infinity}), 1).item<float>(), infinity);
  EXPECT_TRUE(std::isnan(sum_of_squares(at::tensor({1.f, std::nanf("")}), 1).item<float>()));
}

}  // namespace
}  // namespace cohort::internal
