#include "cohort/ops/plan/squares.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <c10/util/SmallVector.h>
#include <torch/csrc/autograd/saved_variable.h>

#include <algorithm>
#include <mutex>
#include <numeric>
#include <utility>

#include "cohort/core/cpu/intra_op_parallel.h"
#include "cohort/core/cpu/vector_clones.h"
#include "cohort/ops/gradient_tape.h"
#include "cohort/ops/graph_node.h"
#include "cohort/ops/plan/kernels.h"
#include "cohort/ops/plan/recorded.h"

namespace cohort::internal {
namespace {

using torch::autograd::variable_list;

// The gradient of factor * sum of x^2 by x.
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

// The most numbers of one sum. Sixty-four sums of floats are made at once, and these are added as
// doubles, in one order on every processor.
constexpr int64_t kSums = 64;
constexpr int64_t kBlock = 32 * kSums;
COHORT_VECTOR_CLONES double squares_of_block(const float* block, int64_t count) {
  float sums[kSums] = {};
  for (int64_t row = 0; row + kSums <= count; row += kSums) {
    const float* __restrict value = block + row;
    for (int64_t i = 0; i < kSums; ++i) sums[i] += value[i] * value[i];
  }
  for (int64_t i = count / kSums * kSums; i < count; ++i) sums[i % kSums] += block[i] * block[i];
  double sum = 0;
  for (int64_t i = 0; i < kSums; ++i) sum += sums[i];
  return sum;
}

}  // namespace

// The blocks are added up in their order, whoever has made their sums.
double add_squares(const float* values, int64_t count) {
  constexpr int64_t kBlocksPerThread = 16;  // at least
  const int64_t num_blocks = (count + kBlock - 1) / kBlock;
  c10::SmallVector<double, 64> sums(static_cast<size_t>(num_blocks));
  intra_op_parallel_for(0, num_blocks, kBlocksPerThread, [&](int64_t first, int64_t last) {
    for (int64_t block = first; block < last; ++block) {
      const int64_t begin = block * kBlock;
      sums[static_cast<size_t>(block)] =
          squares_of_block(values + begin, std::min(count - begin, kBlock));
    }
  });
  return std::accumulate(sums.begin(), sums.end(), 0.0);
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
