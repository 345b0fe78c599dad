#include "cohort/keras/layers/recurrent/abstract_rnn_cell.h"

#include <ATen/ops/zeros.h>

#include <utility>

#include "cohort/core/error.h"
#include "cohort/core/text.h"
#include "cohort/keras/base/describe_leaves.h"

namespace cohort::keras::layers {

using internal::str;

Shape AbstractRNNCell::output_size() const { return state_size().at(0); }

std::vector<Tensor> AbstractRNNCell::get_initial_state(const Tensor& inputs) const {
  std::vector<Tensor> states;
  for (Shape shape : state_size()) {
    shape.insert(shape.begin(), inputs.size(0));
    states.push_back(at::zeros(shape, inputs.options().requires_grad(false)));
  }
  return states;
}

std::shared_ptr<AbstractRNNCell> AbstractRNNCell::clone() const { return nullptr; }

Structure AbstractRNNCell::call(const Structure& inputs, const CallOptions& options) {
  std::vector<Tensor> tensors;
  inputs.for_each([&](const Leaf& leaf) { tensors.push_back(leaf.tensor()); });
  const size_t count = state_size().size();
  if (tensors.size() != count + 1) {
    throw InvalidArgumentError(str("cell '", name(), "' takes a tuple of the inputs of a step and ",
                                   count, " states, but got ", internal::describe_leaves(inputs)));
  }
  const Tensor first = std::move(tensors.front());
  tensors.erase(tensors.begin());
  Step made = step(first, tensors, options);
  if (made.states.size() != count) {
    throw InvalidArgumentError(str("cell '", name(), "' (", class_name(), ") has ", count,
                                   " states by state_size(), but its step gave ",
                                   made.states.size()));
  }
  std::vector<Structure> members = {std::move(made.output)};
  for (Tensor& state : made.states) members.emplace_back(std::move(state));
  return Structure::make_tuple(std::move(members));
}

}  // namespace cohort::keras::layers
