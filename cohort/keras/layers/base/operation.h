// How a layer takes part in plans (ops/plan): it says what it computes, in one place.
//
//   class MyLayer : public Layer, public internal::DescribesOperation {
//     internal::LayerOperation operation(bool /*training*/) const override {
//       return {.operations = {plan::Dense{.units = units_}},
//               .parameters = {&kernel_, &bias_},
//               .activation = activation_};
//     }
//   };
//
// Models run consecutive layers that do as one plan. A layer that does not ends a run, and so does
// one with an activity regularizer or another dtype than float32.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "cohort/distribute/variables/variable.h"
#include "cohort/keras/base/activations.h"
#include "cohort/ops/plan/operation.h"

namespace cohort::internal {

struct LayerOperation {
  std::vector<plan::Operation> operations = {};
  // The layer's members that hold theirs, in order. They are looked at once the layer is built,
  // since another replica may be building it; those that are empty then do not count.
  std::vector<const Variable*> parameters = {};
  // What the layer applies to their result by activate_outputs. A plan ends with one that it does
  // not know.
  keras::activations::Activation activation = {};
  // Whether this holds for training alone, or for outside of it, and as long as trainable() is the
  // same.
  bool depends_on_training = false;
  // Gives, on the host, the values that an operation takes for each pass instead of variables
  // (plan::Dropout).
  std::function<Tensor(at::IntArrayRef shape)> draw = {};
  // Gets, after each pass of plan::Normalization by batch, the shape of its input, and its means
  // and biased variances: [2, channels].
  std::function<void(at::IntArrayRef input, const Tensor& statistics)> receive = {};
  // Why the layer takes no part as it is, for people; empty where it does.
  std::string why_not = "";
};

class DescribesOperation {
 public:
  virtual ~DescribesOperation() = default;
  // What the layer computes in training or outside of it. Called by any thread, also before it is
  // built.
  virtual LayerOperation operation(bool training) const = 0;
};

}  // namespace cohort::internal
