#include "cohort/ops/linear.h"

#include <ATen/Parallel.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/randn.h>
#include <c10/core/InferenceMode.h>
#include <gtest/gtest.h>

#include "cohort/core/cpu/intra_op_threads.h"
#include "cohort/core/error.h"
#include "cohort/ops/gradient_tape.h"

namespace cohort::internal {
namespace {

// Small ones are one product; of the others some are cut into rows and some into columns, and not
// all into equal parts.
struct Case {
  int64_t batch, in, units;
};
const Case kCases[] = {
    {4, 3, 5},      {0, 3, 5},      {257, 301, 129}, {33, 700, 501},
    {4, 700, 1801}, {1801, 700, 4}, {32, 700, 1},
};

class LinearTest : public ::testing::TestWithParam<int> {
 protected:
  const ScopedIntraOpThreads threads{GetParam()};
};

TEST_P(LinearTest, EqualsAddmmWithItsGradients) {
  for (const auto& [batch, in, units] : kCases) {
    for (const bool has_bias : {false, true}) {
      const Tensor x = at::randn({batch, in}, at::kDouble).requires_grad_();
      const Tensor weight = at::randn({in, units}, at::kDouble).requires_grad_();
      const Tensor bias = has_bias ? at::randn({units}, at::kDouble).requires_grad_() : Tensor();
      const auto run = [&](bool split) {
        GradientTape tape;
        const Tensor y = split      ? linear(x, weight, bias)
                         : has_bias ? at::addmm(bias, x, weight)
                                    : at::mm(x, weight);
        std::vector<Tensor> sources{x, weight};
        if (has_bias) sources.push_back(bias);
        std::vector<Tensor> results = tape.gradient(y.sin(), sources);
        results.push_back(y.detach());
        return results;
      };
      const auto found = run(true), expected = run(false);
      for (size_t i = 0; i < expected.size(); ++i) {
        EXPECT_TRUE(at::allclose(found[i], expected[i], 1e-10, 1e-10))
            << batch << " x " << in << " x " << units << ", result " << i;
      }
    }
  }
}

TEST_P(LinearTest, HasSecondDerivatives) {
  const Tensor x = at::randn({160, 200}, at::kDouble).requires_grad_();
  const Tensor weight = at::randn({200, 170}, at::kDouble).requires_grad_();
  const auto second = [&](const auto& product) {
    GradientTape outer;
    Tensor gradient;
    {
      GradientTape inner;
      const Tensor y = product();
      gradient = inner.gradient((y * y).sum(), x);
    }
    return outer.gradient((gradient * gradient).sum(), weight);
  };
  EXPECT_TRUE(at::allclose(second([&] { return linear(x, weight, Tensor()); }),
                           second([&] { return at::mm(x, weight); }), 1e-9, 1e-9));
}

TEST_P(LinearTest, GivesTheSameBitsEveryTime) {
  const Tensor x = at::randn({130, 400}), weight = at::randn({400, 120}), bias = at::randn({120});
  const Tensor once = linear(x, weight, bias);
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(at::equal(linear(x, weight, bias), once));
}

TEST_P(LinearTest, TakesViewsAndGradientsForOneInputOnly) {
  const Tensor x = at::randn({300, 256}).t();  // [256, 300]
  const Tensor weight = at::randn({200, 600}).t().slice(0, 0, 600, 2).requires_grad_();
  GradientTape tape;
  const Tensor y = linear(x, weight, Tensor());
  const Tensor gradient = tape.gradient(y.sum(), weight);
  EXPECT_TRUE(at::allclose(y.detach(), at::mm(x, weight.detach()), 1e-4, 1e-4));
  EXPECT_TRUE(at::allclose(gradient, x.sum(0).unsqueeze(1).expand({300, 200}), 1e-3, 1e-3));
}

TEST_P(LinearTest, WorksInInferenceMode) {
  const Tensor x = at::randn({300, 256}), weight = at::randn({256, 300});
  const c10::InferenceMode inference;
  EXPECT_TRUE(at::allclose(linear(x, weight, Tensor()), at::mm(x, weight), 1e-4, 1e-3));
}

TEST_P(LinearTest, KeepsOnlyWhatAGradientNeeds) {
  const Tensor x = at::randn({300, 256}), weight = at::randn({256, 300}).requires_grad_();
  GradientTape tape;
  const Tensor y = linear(x, weight, Tensor());
  {
    const NoGradient no_gradient;
    weight.add_(1);  // its own value is not needed for its gradient
  }
  EXPECT_TRUE(at::allclose(tape.gradient(y.sum(), weight), x.sum(0).unsqueeze(1).expand({256, 300}),
                           1e-4, 1e-3));
}

TEST_P(LinearTest, ShapesThatDoNotFitAreLibtorchsError) {
  EXPECT_THROW(linear(at::randn({300, 300}), at::randn({301, 300}), Tensor()), c10::Error);
}

INSTANTIATE_TEST_SUITE_P(Threads, LinearTest, ::testing::Values(1, 2, 3));

}  // namespace
}  // namespace cohort::internal
