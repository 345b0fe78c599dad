// Class numbers on a device, which the host does not wait for.
#pragma once

#include <cstdint>

#include "cohort/core/structure/tensor.h"

namespace cohort::internal {

// Checks labels that are not in the host's memory. The device writes the least and the largest one
// to memory of the host, and the next call of the same thread looks at them: an error comes a step
// late, and the losses of that step are NaN, as TensorFlow's are on GPUs.
// Returns the labels cut to [0, classes), and in `valid` which of them were.
// Errors: InvalidArgument (a label of an earlier call of this thread was outside of its range).
Tensor watched_labels(const Tensor& labels, int64_t classes, Tensor& valid);

}  // namespace cohort::internal
