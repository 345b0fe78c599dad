#include "cohort/ops/gelu.h"

#include <ATen/ops/full.h>
#include <ATen/ops/randn.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <cmath>
#include <functional>
#include <vector>

#include "cohort/ops/gradient_tape.h"

namespace cohort::internal {
namespace {

using torch::autograd::grad;

// Memory that is freed holds large numbers then: what no one writes shows.
void spoil_free_memory() {
  std::vector<Tensor> held;
  for (int i = 0; i < 30; ++i) {
    for (const int64_t count : {16, 40, 64, 120, 240}) held.push_back(at::full({count}, 1e20f));
  }
}

// [12, 10] in each of the orders that memory may have.
std::vector<Tensor> layouts() {
  return {at::randn({12, 10}), at::randn({10, 12}).t(), at::randn({12, 20}).narrow(1, 3, 10),
          at::randn({1, 10}).expand({12, 10})};
}

Tensor by_definition(const Tensor& x) { return x * ((x / std::sqrt(2.)).erf() + 1) / 2; }

TEST(Gelu, GradientsDoNotDependOnTheOrderOfTheirMemory) {
  const GradientTape tape;
  for (const Tensor& x : layouts()) {
    for (const Tensor& outer : layouts()) {
      const Tensor ours = x.detach().set_requires_grad(true);
      const Tensor theirs = x.to(at::kDouble).detach().set_requires_grad(true);
      spoil_free_memory();
      const Tensor value = gelu(ours), expected = by_definition(theirs);
      EXPECT_TRUE(value.to(at::kDouble).allclose(expected, 1e-5, 1e-6)) << x.strides();
      const Tensor found = grad({value}, {ours}, {outer})[0];
      EXPECT_TRUE(found.to(at::kDouble)
                      .allclose(grad({expected}, {theirs}, {outer.to(at::kDouble)})[0], 1e-5, 1e-5))
          << x.strides() << " with a gradient of " << outer.strides();
    }
  }
}

TEST(Gelu, HasGradientsOfGradients) {
  const GradientTape tape;
  const auto third = [](const std::function<Tensor(const Tensor&)>& function, const Tensor& x) {
    Tensor result = function(x);
    for (int i = 0; i < 3; ++i) {
      spoil_free_memory();
      // of x's transpose, so that the gradient lies in another order
      result = grad({result.t().square().sum()}, {x}, {}, /*retain_graph=*/true,
                    /*create_graph=*/true)[0];
    }
    return result.detach();
  };
  const Tensor x = at::randn({5, 3}, at::kDouble);
  const Tensor expected = third(by_definition, x.detach().set_requires_grad(true));
  EXPECT_TRUE(third(gelu, x.detach().set_requires_grad(true)).allclose(expected, 1e-9, 1e-9));
  const Tensor single = third(gelu, x.to(at::kFloat).detach().set_requires_grad(true));
  EXPECT_TRUE(single.to(at::kDouble).allclose(expected, 1e-3, 1e-3));
}

TEST(Gelu, WithoutRecordingAsWithIt) {
  const Tensor x = at::randn({7, 9}).t();
  const Tensor plain = gelu(x);
  const GradientTape tape;
  const Tensor recorded = gelu(x.detach().set_requires_grad(true));
  EXPECT_FALSE(plain.requires_grad());
  EXPECT_TRUE(plain.equal(recorded.detach()));
}

}  // namespace
}  // namespace cohort::internal
