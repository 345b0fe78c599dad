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

// The gradient of every element of a term is the sum's, times the factor and divided.
class SumOfTermsNode final : public GraphNode {
 public:
  explicit SumOfTermsNode(c10::ArrayRef<SumTerm> terms) {
    for (const SumTerm& term : terms) {
      terms_.push_back({Sizes(term.x.sizes()), term.divisor, term.factor});
    }
  }

  std::string name() const override { return "SumOfTerms"; }

  variable_list apply(variable_list&& gradients) override {
    const Tensor gradient = gradients[0];
    if (terms_.size() == 1) {
      return only(std::move(gradients), gradient.defined() ? of_term(0, gradient) : Tensor());
    }
    variable_list results(terms_.size());
    if (!gradient.defined()) return results;
    for (size_t i = 0; i < terms_.size(); ++i) {
      if (!task_should_compute_output(i)) continue;
      // Penalties, of which there are many, have one for all.
      const bool is_known = i > 0 && results[i - 1].defined() && terms_[i] == terms_[i - 1];
      results[i] = is_known ? results[i - 1] : of_term(i, gradient);
    }
    return results;
  }

 private:
  using Sizes = c10::SmallVector<int64_t, 4>;
  struct Term {
    Sizes sizes;
    int64_t divisor;
    double factor;
    bool operator==(const Term&) const = default;
  };

  Tensor of_term(size_t i, const Tensor& gradient) const {
    const Term& term = terms_[i];
    if (at::GradMode::is_enabled()) {
      return (gradient * term.factor / term.divisor).expand(term.sizes);
    }
    Tensor result = at::empty(term.sizes, gradient.options());
    std::fill_n(
        result.data_ptr<float>(), result.numel(),
        number_of(gradient) * static_cast<float>(term.factor) / static_cast<float>(term.divisor));
    return result;
  }

  c10::SmallVector<Term, 8> terms_;
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

Tensor by_libtorch(const SumTerm& term) {
  Tensor sum = term.x.dim() == 0 ? term.x : term.x.sum();
  if (term.divisor != 1) sum = sum / term.divisor;
  return term.factor == 1 ? sum : sum * term.factor;
}

}  // namespace

Tensor sum_of_terms(c10::ArrayRef<SumTerm> terms) {
  if (!std::all_of(terms.begin(), terms.end(), [](const auto& term) { return is_small(term.x); })) {
    Tensor sum = by_libtorch(terms[0]);
    for (const SumTerm& term : terms.slice(1)) sum = sum + by_libtorch(term);
    return sum;
  }
  double sum = 0;
  bool recorded = false;
  for (const SumTerm& term : terms) {
    sum += term.factor * (sum_elements<float>(term.x) / static_cast<double>(term.divisor));
    recorded = recorded || term.x.requires_grad();
  }
  Tensor result = at::empty({}, terms[0].x.options().requires_grad(false));
  *result.data_ptr<float>() = static_cast<float>(sum);
  if (recorded && at::GradMode::is_enabled()) {
    torch::autograd::edge_list edges = take_edges();
    for (const SumTerm& term : terms) edges.push_back(edge_of(term.x));
    record(result, std::move(edges), make_node<SumOfTermsNode>(terms));
  }
  return result;
}

Tensor divided_sum(const Tensor& x, int64_t divisor) { return sum_of_terms({{x, divisor}}); }

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
