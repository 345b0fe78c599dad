// Operations of backends on the buffers that one task passes to a call.
#pragma once

#include <span>

#include "cohort/collective/communicator.h"

namespace cohort::collective {

// The first buffer becomes the sum of all, added in their order.
// Errors: InvalidArgument (a dtype that cannot be added).
void fold_buffers(std::span<const Buffer> buffers);

// Copies elements [begin, begin + count) of the first buffer into all others.
void copy_to_others(std::span<const Buffer> buffers, int64_t begin, int64_t count);

// The index of the first element of the part of `rank`.
int64_t offset_of(std::span<const int64_t> counts, int rank);

}  // namespace cohort::collective
