// The order of a functional model's layers: that of Keras, which decides the order of the model's
// variables and the names of its layers in checkpoints.
#pragma once

#include <vector>

#include "cohort/keras/layers/base/symbolic.h"

namespace cohort::internal {

// All layers between `inputs` and `outputs`, including the layers of the inputs, by decreasing
// depth (the longest path to an output); layers of the same depth in the order in which a walk from
// the outputs reaches them. If a layer's output is used as an input, it counts as an input layer of
// its own. `outputs` must not depend on other inputs.
std::vector<keras::layers::LayerHandle> layers_by_depth(const keras::SymbolicStructure& inputs,
                                                        const keras::SymbolicStructure& outputs);

}  // namespace cohort::internal
