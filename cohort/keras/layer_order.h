// The order of a functional model's layers: that of Keras, which decides the order of the model's
// variables and the names of its layers in checkpoints.
#pragma once

#include <vector>

#include "cohort/keras/layers/symbolic.h"

namespace cohort::internal {

// All layers between `inputs` and `outputs`, those of the inputs too, by falling depth (the longest
// way to an output); those of one depth as a walk from the outputs first meets them. An output of a
// layer that serves as an input stands for an input layer of its own.
// `outputs` must depend on no other inputs.
std::vector<keras::layers::LayerHandle> layers_by_depth(const keras::SymbolicStructure& inputs,
                                                        const keras::SymbolicStructure& outputs);

}  // namespace cohort::internal
