#include "cohort/parameter_server/variables/row_lookup.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/_sparse_coo_tensor_unsafe.h>
#include <ATen/ops/zeros.h>
#include <torch/csrc/autograd/custom_function.h>

namespace cohort::internal {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

class Lookup : public torch::autograd::Function<Lookup> {
 public:
  static Tensor forward(AutogradContext* context, const Tensor& leaf, const Tensor& rows,
                        const Tensor& positions, const Tensor& ids, const Tensor& in_ids,
                        bool is_all) {
    context->saved_data["shape"] = leaf.sizes().vec();
    context->saved_data["ids"] = ids;
    context->saved_data["in_ids"] = in_ids;
    context->saved_data["is_all"] = is_all;
    return is_all ? rows.detach() : gather_rows(rows, positions);
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const Tensor ids = context->saved_data["ids"].toTensor();
    const Tensor in_ids = context->saved_data["in_ids"].toTensor();
    const auto shape = context->saved_data["shape"].toIntVector();
    const Tensor& gradient = gradients[0];
    // A pass that is itself recorded needs operations that are.
    Tensor sum;
    if (context->saved_data["is_all"].toBool()) {
      sum = gradient.contiguous();
    } else if (at::GradMode::is_enabled()) {
      std::vector<int64_t> of_rows = shape;
      of_rows[0] = ids.numel();
      sum = at::zeros(of_rows, gradient.options()).index_add(0, in_ids, gradient);
    } else {
      sum = sum_rows(gradient, in_ids, ids.numel());
    }
    const Tensor sparse = at::_sparse_coo_tensor_unsafe(ids.unsqueeze(0), sum, shape,
                                                        sum.options().layout(at::kSparse));
    return {sparse._coalesced_(true), Tensor(), Tensor(), Tensor(), Tensor(), Tensor()};
  }
};

class StandsFor : public torch::autograd::Function<StandsFor> {
 public:
  static Tensor forward(AutogradContext*, const Tensor&, const Tensor& value) {
    return value.detach();
  }
  static variable_list backward(AutogradContext*, const variable_list& gradients) {
    return {gradients[0], Tensor()};
  }
};

}  // namespace

Tensor looked_up(const Tensor& leaf, const Tensor& rows, const Tensor& positions,
                 const DistinctRows& distinct) {
  if (!at::GradMode::is_enabled() || !leaf.requires_grad()) return gather_rows(rows, positions);
  return Lookup::apply(leaf, rows, positions, distinct.ids, distinct.positions, false);
}

Tensor looked_up_all(const Tensor& leaf, const Tensor& rows, const Tensor& ids) {
  if (!at::GradMode::is_enabled() || !leaf.requires_grad()) return rows;
  return Lookup::apply(leaf, rows, ids, ids, ids, true);
}

Tensor stands_for(const Tensor& leaf, const Tensor& value) {
  if (!at::GradMode::is_enabled() || !leaf.requires_grad()) return value;
  return StandsFor::apply(leaf, value);
}

}  // namespace cohort::internal
