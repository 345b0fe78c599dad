#include "cohort/keras/layers/base/fusion.h"

#include <ATen/ops/mm.h>
#include <ATen/ops/zeros.h>

#include "cohort/keras/layers/base/layer_state.h"

namespace cohort::internal {

using keras::CallOptions;
using keras::layers::Layer;

namespace {

bool can_average_rows(const Layer& first, const Layer& second) {
  return dynamic_cast<const LooksUpRows*>(&first) != nullptr &&
         dynamic_cast<const AveragesSequences*>(&second) != nullptr &&
         first.dtype_policy() == second.dtype_policy() && !first.has_activity_regularizer();
}

// Whether what `averaging` gives need not be computed for `next`.
bool can_multiply_on(const Layer& averaging, const Layer& next) {
  return dynamic_cast<const MultipliesInput*>(&next) != nullptr &&
         averaging.dtype_policy() == next.dtype_policy() && !averaging.has_activity_regularizer();
}

// A tensor of a value's form, for layers that look at nothing else. All elements share one number.
Tensor formed_as(const Tensor& value, at::IntArrayRef sizes) {
  return at::zeros({}, value.options().requires_grad(false)).expand(sizes);
}

}  // namespace

Tensor Product::value() const { return at::mm(left, right); }

size_t fused_chain(std::span<Layer* const> layers) {
  if (layers.size() < 2 || !can_average_rows(*layers[0], *layers[1])) return 0;
  return layers.size() > 2 && can_multiply_on(*layers[1], *layers[2]) ? 3 : 2;
}

// The layers see the means as if each were all rows of its sequence; a third one gets them as a
// product.
Structure call_chain(std::span<Layer* const> chain, const Structure& inputs,
                     const CallOptions& options) {
  std::optional<Product> mean;
  const bool are_sequences =
      inputs.is_leaf() && inputs.leaf().is_tensor() && inputs.tensor().dim() == 2;
  Structure values = inputs;
  if (are_sequences) {
    auto& lookup = dynamic_cast<LooksUpRows&>(*chain[0]);
    const Tensor& ids = inputs.tensor();
    values = chain[0]->state_->run(inputs, options, [&](const CallOptions&) {
      mean = lookup.mean_of_rows(ids);
      if (!mean) return Structure(lookup.look_up(ids));
      return Structure(formed_as(mean->right, {ids.size(0), ids.size(1), mean->right.size(1)}));
    });
  }
  if (!mean) {
    for (Layer* layer : chain.subspan(are_sequences ? 1 : 0)) values = (*layer)(values, options);
    return values;
  }
  const bool is_multiplied = chain.size() == 3;
  values = chain[1]->state_->run(values, options, [&](const CallOptions&) {
    return Structure(is_multiplied
                         ? formed_as(mean->right, {mean->left.size(0), mean->right.size(1)})
                         : mean->value());
  });
  if (!is_multiplied) return values;
  return chain[2]->state_->run(values, options, [&](const CallOptions&) {
    return Structure(dynamic_cast<MultipliesInput&>(*chain[2]).call_on_product(*mean));
  });
}

}  // namespace cohort::internal
