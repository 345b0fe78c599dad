// The calls of layers of which a functional model is made.
#pragma once

#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "cohort/keras/layers/base/symbolic.h"

namespace cohort::internal {

// The calls between a model's inputs and outputs, by layer; an Input is a call of its layer. Those
// of one layer have numbers from 0 on, in the order in which a walk from the outputs reaches them.
// Thread safety: immutable.
class GraphCalls {
 public:
  GraphCalls(const keras::SymbolicStructure& inputs, const keras::SymbolicStructure& outputs);

  const std::vector<const SymbolicNode*>& of(const keras::layers::Layer* layer) const;
  size_t number_of(const SymbolicNode& node) const { return numbers_.at(&node); }

 private:
  void visit(const SymbolicNode& node);
  void number(const SymbolicNode& node);

  std::unordered_set<const SymbolicNode*> visited_;
  std::unordered_map<const keras::layers::Layer*, std::vector<const SymbolicNode*>> by_layer_;
  std::unordered_map<const SymbolicNode*, size_t> numbers_;
};

}  // namespace cohort::internal
