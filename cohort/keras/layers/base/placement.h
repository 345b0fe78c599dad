// Where layers compute.
#pragma once

#include <c10/core/Device.h>

#include "cohort/core/structure/structure.h"

namespace cohort::keras::layers {
class Layer;
}

namespace cohort::internal {

// The device of the replica whose step the calling code runs; in a strategy's scope that of its first
// replica; else the host.
c10::Device computing_device();

// What a layer is called with outside of steps: tensors of the host are copied to where its weights are,
// or will be.
Structure beside_weights(const Structure& inputs, const keras::layers::Layer& layer);

}  // namespace cohort::internal
