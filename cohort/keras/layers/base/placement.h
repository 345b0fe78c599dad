// The devices on which layers compute.
#pragma once

#include <c10/core/Device.h>

#include "cohort/core/structure/structure.h"

namespace cohort::internal {

class StrategyCore;

// The device of the replica whose step the calling code runs; in a strategy's scope that of its
// first replica; else the host.
c10::Device computing_device();

// The first device on which the strategy computes; the host where other tasks compute.
c10::Device first_device(const StrategyCore& core);

// Whether the calling code is a replica's step.
bool is_in_step();

// The inputs with tensors of the host copied to `device`.
Structure copied_to_device(const Structure& inputs, c10::Device device);

}  // namespace cohort::internal
