// Probabilities that know their logits.
//
// Of a probability that is 1 to the last bit no gradient comes back, so a crossentropy of saturated
// outputs would not train. Keras computes it from what the sigmoid or softmax was given; so do the
// losses here, where the outputs of a layer come to them as they are.
#pragma once

#include "cohort/core/structure/tensor.h"
#include "cohort/keras/base/activations.h"

namespace cohort::internal {

// What `activation` makes of a layer's outputs; a sigmoid or softmax by name remembers its logits.
Tensor activate_outputs(const keras::activations::Activation& activation, const Tensor& logits);

// Undefined where `probabilities` is not the very result of activate_outputs in this thread.
Tensor logits_of_sigmoid(const Tensor& probabilities);
Tensor logits_of_softmax(const Tensor& probabilities);  // over the last axis

}  // namespace cohort::internal
