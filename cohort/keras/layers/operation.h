// How a layer takes part in plans (ops/plan): it says what it computes, in one place.
//
//   class MyLayer : public Layer, public internal::DescribesOperation {
//     internal::LayerOperation operation() const override {
//       return internal::with_activation({.operations = {plan::Dense{.units = units_}},
//                                         .parameters = {&kernel_, &bias_}},
//                                        activation_);
//     }
//   };
//
// Models run consecutive layers that do as one plan. A layer that does not ends a run, and so does
// one with an activity regularizer or another dtype than float32.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "cohort/distribute/variable.h"
#include "cohort/keras/activations.h"
#include "cohort/ops/plan/operation.h"

namespace cohort::internal {

struct LayerOperation {
  std::vector<plan::Operation> operations = {};
  // The layer's members that hold theirs, in order. They are looked at once the layer is built, since another
  // replica may be building it; those that are empty then do not count.
  std::vector<const Variable*> parameters = {};
  // What the layer applies to their result by activate_outputs. A plan ends there.
  keras::activations::Activation activation = {};
  // Why the layer takes no part as it is, for people; empty where it does.
  std::string why_not = "";
};

class DescribesOperation {
 public:
  virtual ~DescribesOperation() = default;
  virtual LayerOperation operation() const = 0;
};

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
