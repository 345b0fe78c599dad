#include "cohort/keras/layers/fusion.h"

#include "cohort/keras/layers/layer_state.h"

namespace cohort::internal {

using keras::CallOptions;
using keras::layers::Layer;

bool can_fuse(const Layer& first, const Layer& second) {
  return dynamic_cast<const LooksUpRows*>(&first) != nullptr &&
         dynamic_cast<const AveragesSequences*>(&second) != nullptr &&
         !first.has_activity_regularizer();
}

// The second layer sees the means as if each were all rows of its sequence.
Structure call_fused(Layer& first, Layer& second, const Structure& inputs,
                     const CallOptions& options) {
  if (!inputs.is_leaf() || !inputs.leaf().is_tensor() || inputs.tensor().dim() != 2) {
    return second(first(inputs, options), options);
  }
  auto& lookup = dynamic_cast<LooksUpRows&>(first);
  const int64_t length = inputs.tensor().size(1);
  Tensor mean;
  const Structure rows = first.state_->run(inputs, options, [&](const CallOptions&) {
    mean = lookup.mean_of_rows(inputs.tensor());
    return Structure(mean.defined() ? mean.unsqueeze(1).expand({-1, length, -1})
                                    : lookup.look_up(inputs.tensor()));
  });
  if (!mean.defined()) return second(rows, options);
  return second.state_->run(rows, options, [&](const CallOptions&) { return Structure(mean); });
}

}  // namespace cohort::internal
