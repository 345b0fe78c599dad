#include "cohort/keras/model/graph_calls.h"

namespace cohort::internal {

using keras::SymbolicStructure;
using keras::SymbolicTensor;

GraphCalls::GraphCalls(const SymbolicStructure& inputs, const SymbolicStructure& outputs) {
  for (const SymbolicTensor& input : inputs.leaves()) {
    visited_.insert(input.node().get());
    number(*input.node());
  }
  for (const SymbolicTensor& output : outputs.leaves()) visit(*output.node());
}

const std::vector<const SymbolicNode*>& GraphCalls::of(const keras::layers::Layer* layer) const {
  static const std::vector<const SymbolicNode*> none;
  const auto found = by_layer_.find(layer);
  return found == by_layer_.end() ? none : found->second;
}

void GraphCalls::visit(const SymbolicNode& node) {
  if (!visited_.insert(&node).second) return;
  for (const SymbolicTensor& input : node.inputs->leaves()) visit(*input.node());
  number(node);
}

void GraphCalls::number(const SymbolicNode& node) {
  auto& calls = by_layer_[node.layer.get()];
  numbers_[&node] = calls.size();
  calls.push_back(&node);
}

}  // namespace cohort::internal
