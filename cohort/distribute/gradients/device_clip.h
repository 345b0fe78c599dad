// Clipping of gradients that lie on devices.
#pragma once

#include <vector>

#include "cohort/distribute/gradients/gradient_exchange.h"

namespace cohort::internal {

// Clips the sums, of which some may be undefined, as the step's clipnorm and global_clipnorm say.
// The host waits for nothing, and so learns no norm. Under a NoGradGuard.
// Returns the factor, float64 [], by which all sums are to be multiplied besides; undefined where
// it is step.factor.
Tensor clip_on_devices(std::vector<Tensor>& sums, const UpdateStep& step);

}  // namespace cohort::internal
