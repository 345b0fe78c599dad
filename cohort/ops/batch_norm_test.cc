#include "cohort/ops/batch_norm.h"

#include <ATen/ops/full.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/var_mean.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "cohort/core/cpu/intra_op_threads.h"
#include "cohort/ops/gradient_tape.h"

namespace cohort::internal {
namespace {

using torch::autograd::grad;

constexpr double kBatchEpsilon = 1e-3;

// To 1e-5 of the largest, or of the terms that it is a difference of.
void expect_within_digits(const Tensor& ours, const Tensor& theirs, const char* what,
                          double terms = 1e-3) {
  ASSERT_TRUE(ours.defined()) << what;
  ASSERT_EQ(ours.sizes(), theirs.sizes()) << what;
  const double largest = std::max(theirs.abs().max().item<double>(), terms);
  EXPECT_LE((ours.to(at::kDouble) - theirs).abs().max().item<double>(), 1e-5 * largest) << what;
}

struct NormSample {
  explicit NormSample(const std::vector<int64_t>& shape)
      : x((at::randn(shape) * 3 + 2).requires_grad_()),
        gamma(at::rand({shape.back()}).requires_grad_()),
        beta(at::randn({shape.back()}).requires_grad_()) {}

  GradientTape tape{{.persistent = true}};
  Tensor x, gamma, beta;
};

Tensor widened(const Tensor& tensor) {
  return tensor.defined() ? tensor.detach().to(at::kDouble).requires_grad_() : Tensor();
}

void expect_equals_reference(const Tensor& x, const Tensor& gamma, const Tensor& beta) {
  const NormalizedBatch ours = normalize_by_batch(x, gamma, beta, kBatchEpsilon);
  const Tensor x2 = widened(x), gamma2 = widened(gamma), beta2 = widened(beta);
  const Tensor theirs = normalize_by_batch_reference(x2, gamma2, beta2, kBatchEpsilon);
  expect_within_digits(ours.output, theirs, "output");
  const auto [variance, mean] = at::var_mean(x2.detach().flatten(0, -2), {0}, /*unbiased=*/false);
  expect_within_digits(ours.mean, mean, "mean");
  expect_within_digits(ours.variance, variance, "variance");
  const Tensor outer = at::randn(x.sizes());
  std::vector<Tensor> sources{x}, wide_sources{x2};
  if (gamma.defined()) sources.push_back(gamma), wide_sources.push_back(gamma2);
  if (beta.defined()) sources.push_back(beta), wide_sources.push_back(beta2);
  const auto found = grad({ours.output}, sources, {outer});
  const auto expected = grad({theirs}, wide_sources, {outer.to(at::kDouble)});
  // Of few rows the input's gradient is what is left of nearly equal terms.
  const double terms =
      outer.abs().max().item<double>() / std::sqrt(variance.min().item<double>() + kBatchEpsilon);
  // The gradients of gamma and beta are sums over all rows, which may cancel.
  const double summands = outer.abs().flatten(0, -2).sum(0).max().item<double>();
  for (size_t i = 0; i < found.size(); ++i) {
    expect_within_digits(found[i], expected[i], "gradient", i == 0 ? terms : summands);
  }
}

TEST(BatchNorm, EqualsLibtorch) {
  const std::vector<std::vector<int64_t>> shapes = {
      {2, 3}, {40, 1}, {33, 17}, {4, 5, 6, 64}, {3, 7, 5, 70}, {8, 32, 32, 16}, {2, 40, 130}};
  for (const auto& shape : shapes) {
    const NormSample s(shape);
    expect_equals_reference(s.x, s.gamma, s.beta);
    expect_equals_reference(s.x, Tensor(), s.beta);
    expect_equals_reference(s.x, s.gamma, Tensor());
    expect_equals_reference(s.x, Tensor(), Tensor());
  }
}

TEST(BatchNorm, GivesTheGradientsThatAreWanted) {
  const NormSample s({6, 4});
  const auto all =
      grad({normalize_by_batch(s.x, s.gamma, s.beta, kBatchEpsilon).output.square().sum()},
           {s.x, s.gamma, s.beta});
  const Tensor sources[] = {s.x, s.gamma, s.beta};
  for (size_t i = 0; i < 3; ++i) {
    const auto one =
        grad({normalize_by_batch(s.x, s.gamma, s.beta, kBatchEpsilon).output.square().sum()},
             {sources[i]});
    EXPECT_TRUE(one[0].equal(all[i])) << i;
  }
}

TEST(BatchNorm, HasGradientsOfGradients) {
  const NormSample s({9, 5});
  const auto second = [&](const Tensor& output) {
    const auto first = grad({output.pow(3).sum()}, {s.x, s.gamma, s.beta}, {}, true, true);
    Tensor penalty = first[0].square().sum() + first[1].square().sum() + first[2].square().sum();
    return grad({penalty}, {s.x, s.gamma, s.beta});
  };
  const auto ours = second(normalize_by_batch(s.x, s.gamma, s.beta, kBatchEpsilon).output);
  const auto theirs = second(normalize_by_batch_reference(s.x, s.gamma, s.beta, kBatchEpsilon));
  for (size_t i = 0; i < 3; ++i) EXPECT_TRUE(ours[i].allclose(theirs[i], 1e-3, 1e-2)) << i;
}

// 1e4 stands for means far beyond the deviation, whose squares would swallow it.
TEST(BatchNorm, KeepsTheDigitsOfASmallVariance) {
  const Tensor noise = at::randn({4000, 3});
  const Tensor x = noise + 1e4;
  const Tensor exact = std::get<0>(at::var_mean(x.to(at::kDouble), {0}, /*unbiased=*/false));
  expect_within_digits(normalize_by_batch(x, Tensor(), Tensor(), kBatchEpsilon).variance, exact,
                       "variance");
  Tensor first_differs = noise.clone();
  first_differs[0].fill_(1e5);
  const Tensor outlier =
      std::get<0>(at::var_mean(first_differs.to(at::kDouble), {0}, /*unbiased=*/false));
  expect_within_digits(
      normalize_by_batch(first_differs, Tensor(), Tensor(), kBatchEpsilon).variance, outlier,
      "variance with an outlier");
  const NormalizedBatch constant =
      normalize_by_batch(at::full({50, 2}, 7.3f), Tensor(), Tensor(), kBatchEpsilon);
  EXPECT_LT(constant.variance.abs().max().item<float>(), 1e-10);
  EXPECT_NEAR(constant.output.abs().max().item<float>(), 0, 1e-4);
}

TEST(BatchNorm, GivesTheSameBitsOnAnyNumberOfThreads) {
  const NormSample s({16, 24, 24, 48});
  const auto outcome = [&] {
    const NormalizedBatch batch = normalize_by_batch(s.x, s.gamma, s.beta, kBatchEpsilon);
    std::vector<Tensor> all = grad({batch.output.square().sum()}, {s.x, s.gamma, s.beta});
    for (const Tensor& tensor : {batch.output.detach(), batch.mean, batch.variance}) {
      all.push_back(tensor);
    }
    return all;
  };
  std::vector<Tensor> expected;
  {
    const ScopedIntraOpThreads one(1);
    expected = outcome();
  }
  for (const int threads : {2, 3, 5}) {
    const ScopedIntraOpThreads several(threads);
    const std::vector<Tensor> found = outcome();
    for (size_t i = 0; i < found.size(); ++i) {
      EXPECT_TRUE(found[i].equal(expected[i])) << i << " on " << threads << " threads";
    }
  }
}

TEST(BatchNorm, RefusesAnInputThatWasChangedInPlace) {
  const GradientTape tape;
  const Tensor source = at::randn({4, 2}).requires_grad_();
  Tensor x = source * 2;
  const Tensor sum = normalize_by_batch(x, Tensor(), Tensor(), kBatchEpsilon).output.square().sum();
  x.add_(1);
  EXPECT_THROW(grad({sum}, {source}), c10::Error);
}

TEST(BatchNorm, LeavesTheRestToLibtorch) {
  EXPECT_TRUE(can_normalize_by_batch(at::randn({2, 3})));
  EXPECT_FALSE(can_normalize_by_batch(at::randn({2, 3}, at::kDouble)));
  EXPECT_FALSE(can_normalize_by_batch(at::randn({3, 2}).t()));
  EXPECT_FALSE(can_normalize_by_batch(at::randn({0, 3})));
  EXPECT_FALSE(can_normalize_by_batch(at::randn({3})));
}

}  // namespace
}  // namespace cohort::internal
