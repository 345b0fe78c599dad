#include "cohort/ops/small_sums.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/ones_like.h>
#include <c10/util/SmallVector.h>

#include <algorithm>
#include <utility>

#include "cohort/ops/graph_node.h"

namespace cohort::internal {
namespace {

using torch::autograd::variable_list;

// Few numbers on the host, without gaps: a loop over them is shorter than the way to libtorch's.
bool is_small(const Tensor& x, at::ScalarType dtype = at::kFloat) {
  constexpr int64_t kMostElements = 1024;
  return x.is_cpu() && x.layout() == at::kStrided && x.scalar_type() == dtype &&
         x.numel() <= kMostElements && x.is_contiguous() && !x.is_conj() && !x.is_neg();
}

template <class T>
double sum_elements(const Tensor& x) {
  const T* const values = x.data_ptr<T>();
  double sum = 0;
  for (int64_t i = 0; i < x.numel(); ++i) sum += static_cast<double>(values[i]);
  return sum;
}

// Every element's gradient is the sum's, divided.
class DividedSumNode final : public GraphNode {
 public:
  DividedSumNode(const Tensor& x, int64_t divisor) : sizes_(x.sizes()), divisor_(divisor) {}

  std::string name() const override { return "DividedSum"; }

  variable_list apply(variable_list&& gradients) override {
    const Tensor gradient = gradients[0];
    if (!gradient.defined()) return only(std::move(gradients), Tensor());
    if (at::GradMode::is_enabled()) {
      return only(std::move(gradients), (gradient / divisor_).expand(sizes_));
    }
    Tensor result = at::empty(sizes_, gradient.options());
    std::fill_n(result.data_ptr<float>(), result.numel(),
                gradient.item<float>() / static_cast<float>(divisor_));
    return only(std::move(gradients), std::move(result));
  }

 private:
  const c10::SmallVector<int64_t, 4> sizes_;
  const int64_t divisor_;
};

class SumOfNode final : public GraphNode {
 public:
  explicit SumOfNode(size_t count) : count_(count) {}

  std::string name() const override { return "SumOf"; }

  variable_list apply(variable_list&& gradients) override {
    return variable_list(count_, gradients[0]);
  }

 private:
  const size_t count_;
};

}  // namespace

Tensor divided_sum(const Tensor& x, int64_t divisor) {
  if (!is_small(x)) return x.sum() / divisor;
  Tensor result = at::empty({}, x.options().requires_grad(false));
  *result.data_ptr<float>() =
      static_cast<float>(sum_elements<float>(x) / static_cast<double>(divisor));
  if (at::GradMode::is_enabled() && x.requires_grad()) {
    record(result, edges_of(x), make_node<DividedSumNode>(x, divisor));
  }
  return result;
}

std::optional<double> sum_if_small(const Tensor& x) {
  if (is_small(x)) return sum_elements<float>(x);
  if (is_small(x, at::kBool)) return sum_elements<bool>(x);
  return std::nullopt;
}

Tensor sum_of(at::TensorList tensors) {
  if (tensors.size() == 1) return tensors[0];
  if (!std::all_of(tensors.begin(), tensors.end(), [](const Tensor& x) { return is_small(x); })) {
    Tensor sum = tensors[0] + tensors[1];
    for (size_t i = 2; i < tensors.size(); ++i) sum = sum + tensors[i];
    return sum;
  }
  Tensor sum = at::empty(tensors[0].sizes(), tensors[0].options());
  float* const to = sum.data_ptr<float>();
  std::fill_n(to, sum.numel(), 0.f);
  bool recorded = false;
  for (const Tensor& tensor : tensors) {
    const float* const from = tensor.data_ptr<float>();
    for (int64_t i = 0; i < sum.numel(); ++i) to[i] += from[i];
    recorded = recorded || tensor.requires_grad();
  }
  if (recorded && at::GradMode::is_enabled()) {
    record(sum, edges_of(tensors), make_node<SumOfNode>(tensors.size()));
  }
  return sum;
}

Tensor ones_of(const Tensor& like) {
  if (!is_small(like)) return at::ones_like(like);
  Tensor ones = at::empty(like.sizes(), like.options().requires_grad(false));
  std::fill_n(ones.data_ptr<float>(), ones.numel(), 1.f);
  return ones;
}

}  // namespace cohort::internal
