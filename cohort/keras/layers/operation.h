// How a layer takes part in plans (ops/plan): it says what it computes, in one place.
//
//   class MyLayer : public Layer, public internal::DescribesOperation {
//     internal::LayerOperation operation() const override {
//       return internal::with_activation({.operations = {plan::Dense{.units = units_}},
//                                         .parameters = internal::made({kernel_, bias_})},
//                                        activation_);
//     }
//   };
//
// Models run consecutive layers that do as one plan. A layer that does not ends a run, and so does
// one with an activity regularizer or another dtype than float32.
#pragma once

#include <initializer_list>
#include <utility>
#include <vector>

#include "cohort/distribute/variable.h"
#include "cohort/keras/activations.h"
#include "cohort/ops/plan/operation.h"

namespace cohort::internal {

struct LayerOperation {
  std::vector<plan::Operation> operations = {};
  std::vector<Variable> parameters = {};  // theirs, in order, once the layer is built
  // What the layer applies to their result by activate_outputs. A plan ends there.
  keras::activations::Activation activation = {};
};

class DescribesOperation {
 public:
  virtual ~DescribesOperation() = default;
  virtual LayerOperation operation() const = 0;
};

// Those of a layer's variables that there are.
inline std::vector<Variable> made(std::initializer_list<Variable> variables) {
  std::vector<Variable> found;
  for (const Variable& variable : variables) {
    if (variable) found.push_back(variable);
  }
  return found;
}

// The operation with an activation behind it, within the plan where plans know it.
inline LayerOperation with_activation(LayerOperation operation,
                                      const keras::activations::Activation& activation) {
  if (activation.is_named() && activation.name() == "relu") {
    operation.operations.push_back(plan::Rectifier{});
  } else {
    operation.activation = activation;
  }
  return operation;
}

}  // namespace cohort::internal
