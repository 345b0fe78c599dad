// A batch without rows, for replicas without data.
#pragma once

#include "cohort/core/structure/spec.h"

namespace cohort::internal {

// Dimension 0 and unknown dimensions are 0, scalars 0 or "".
Structure dummy_batch(const StructureSpec& spec);

}  // namespace cohort::internal
