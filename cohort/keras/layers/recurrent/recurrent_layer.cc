#include <ATen/ops/zeros.h>

#include "cohort/keras/layers/describe_leaves.h"
#include "cohort/keras/layers/recurrent/cell.h"
#include "cohort/keras/masks.h"

namespace cohort::keras::layers {

using internal::str;

RecurrentLayer::RecurrentLayer(const char* class_name, LayerOptions layer_options,
                               std::shared_ptr<Cell> cell, const Options& options)
    : Layer(class_name, std::move(layer_options)), cell_(std::move(cell)), options_(options) {
  track("cell", LayerHandle(cell_));
}

std::optional<Config> RecurrentLayer::get_config() const {
  return internal::layer_config(
      *this, [this](internal::FieldWriter& field) { cell_->write_fields(field); });
}

Structure RecurrentLayer::call(const Structure& inputs, const CallOptions& call_options) {
  std::vector<Tensor> tensors;
  inputs.for_each([&](const Leaf& leaf) { tensors.push_back(leaf.tensor()); });
  check(tensors, inputs);
  const Tensor mask = internal::mask_of(tensors[0]);
  for (Tensor& tensor : tensors) tensor = tensor.to(dtype());
  (*cell_)(tensors[0], call_options);  // builds it
  Pass pass;
  pass.sequences = options_.go_backwards ? tensors[0].flip(1) : tensors[0];
  if (mask.defined()) pass.mask = options_.go_backwards ? mask.flip(1) : mask;
  pass.zeros_where_masked = zeros_where_masked_;
  pass.training = *call_options.training;
  pass.state.assign(tensors.begin() + 1, tensors.end());
  while (pass.state.size() < static_cast<size_t>(cell_->sizes().states)) {
    pass.state.push_back(
        at::zeros({pass.sequences.size(0), cell_->sizes().units}, pass.sequences.options()));
  }
  const Run run = cell_->run(pass);
  const Tensor output =
      options_.return_sequences ? internal::with_mask(run.outputs, mask) : run.last;
  if (!options_.return_state) return output;
  std::vector<Structure> members = {output};
  members.insert(members.end(), run.state.begin(), run.state.end());
  return Structure::make_tuple(std::move(members));
}

void RecurrentLayer::check(const std::vector<Tensor>& tensors, const Structure& inputs) const {
  const auto with_state = static_cast<size_t>(cell_->sizes().states + 1);
  const bool right_number = tensors.size() == 1 || tensors.size() == with_state;
  if (right_number && tensors[0].dim() == 3 && tensors[0].size(1) > 0) return;
  throw InvalidArgumentError(str("layer '", name(),
                                 "' takes [batch, steps, features] with one "
                                 "step or more, or a tuple of it and ",
                                 with_state - 1, " initial states, but got ",
                                 internal::describe_leaves(inputs)));
}

}  // namespace cohort::keras::layers
