// The devices on which layers compute.
#pragma once

#include <c10/core/Device.h>

#include "cohort/core/structure/structure.h"
#include "cohort/keras/layers/base/layer.h"

namespace cohort::internal {

// The device of the replica whose step the calling code runs; in a strategy's scope that of its
// first replica; else the host.
c10::Device computing_device();

// What the layer is called with outside of steps: tensors of the host are copied to the device
// where its weights are, or will be. Where a step runs, they are there already.
Structure beside_weights(const Structure& inputs, const keras::layers::Layer& layer);

}  // namespace cohort::internal
