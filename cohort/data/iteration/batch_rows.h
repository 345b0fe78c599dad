// The number of rows of a batch, for transformations that take batches apart.
#pragma once

#include <cstdint>

#include "cohort/core/structure.h"

namespace cohort::internal {

// Errors: InvalidArgument (a scalar, leaves of different sizes, no leaves), naming the
// transformation and the leaves.
int64_t checked_rows(const char* transformation, const Structure& batch);

}  // namespace cohort::internal
