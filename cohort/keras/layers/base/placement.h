// The devices on which layers compute.
#pragma once

#include <c10/core/Device.h>

#include <vector>

#include "cohort/core/structure/structure.h"
#include "cohort/distribute/variables/variable.h"

namespace cohort::internal {

// The device of the replica whose step the calling code runs; in a strategy's scope that of its
// first replica; else the host.
c10::Device computing_device();

// What a layer of these weights is called with outside of steps: tensors of the host are copied to
// the device where the weights are, or will be.
Structure beside_weights(const Structure& inputs,
                         const std::vector<distribute::Variable>& weights);

}  // namespace cohort::internal
