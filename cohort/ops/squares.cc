#include "cohort/ops/squares.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <torch/csrc/autograd/saved_variable.h>

#include <algorithm>
#include <mutex>
#include <utility>

#include "cohort/core/vector_clones.h"
#include "cohort/ops/gradient_tape.h"
#include "cohort/ops/graph_node.h"
#include "cohort/ops/plan/kernels.h"
#include "cohort/ops/plan/recorded.h"

namespace cohort::internal {
namespace {

using torch::autograd::variable_list;

// Of factor * sum of x^2 by x.
class SquaresNode final : public GraphNode {
 public:
  SquaresNode(const Tensor& x, double factor) : x_(x, /*is_output=*/false), factor_(factor) {}

  std::string name() const override { return "SumOfSquares"; }

  variable_list apply(variable_list&& gradients) override {
    const std::lock_guard lock(mutex_);
    const Tensor gradient = gradients[0];
    if (!gradient.defined()) return only(std::move(gradients), Tensor());
    const Tensor x = x_.unpack();
    if (at::GradMode::is_enabled() || !plan::is_plain(x)) {
      return only(std::move(gradients), x * (gradient * (2 * factor_)));
    }
    Tensor result = at::empty_like(x);
    plan::scale(x.data_ptr<float>(), number_of(gradient) * static_cast<float>(2 * factor_),
                x.numel(), result.data_ptr<float>());
    return only(std::move(gradients), std::move(result));
  }
  void release_variables() override {
    const std::lock_guard lock(mutex_);
    x_.reset_data();
  }

 private:
  torch::autograd::SavedVariable x_;
  const double factor_;
};

}  // namespace

// Blocks are added up as floats, sixty-four sums at once, and the blocks as doubles: so their order is that
// of no processor.
COHORT_VECTOR_CLONES double add_squares(const float* values, int64_t count) {
  constexpr int64_t kSums = 64;
  constexpr int64_t kBlock = 32 * kSums;
  double sum = 0;
  for (int64_t first = 0; first < count; first += kBlock) {
    const float* const block = values + first;
    const int64_t left = std::min(count - first, kBlock);
    float sums[kSums] = {};
    for (int64_t row = 0; row + kSums <= left; row += kSums) {
      const float* __restrict value = block + row;
      for (int64_t i = 0; i < kSums; ++i) sums[i] += value[i] * value[i];
    }
    for (int64_t i = left / kSums * kSums; i < left; ++i) sums[i % kSums] += block[i] * block[i];
    for (int64_t i = 0; i < kSums; ++i) sum += sums[i];
  }
  return sum;
}

Tensor sum_of_squares(const Tensor& x, double factor) {
  Tensor sum;
  if (plan::is_plain(x)) {
    sum = at::empty({}, x.options().requires_grad(false));
    *sum.data_ptr<float>() =
        static_cast<float>(add_squares(x.data_ptr<float>(), x.numel()) * factor);
  } else {
    const NoGradient no_gradient;
    sum = x.square().sum() * factor;
  }
  if (at::GradMode::is_enabled() && x.requires_grad() && !plan::record_penalty(x, factor, sum)) {
    record(sum, edges_of(x), make_node<SquaresNode>(x, factor));
  }
  return sum;
}

}  // namespace cohort::internal
