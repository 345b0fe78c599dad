// The buffers that one task brings to a call: what backends do with them among themselves.
#pragma once

#include <span>

#include "cohort/collective/communicator.h"

namespace cohort::collective {

// The first buffer becomes the sum of all, in their order.
// Errors: InvalidArgument (a dtype that cannot be added).
void fold_buffers(std::span<const Buffer> buffers);

// Copies elements [begin, begin + count) of the first buffer into all others.
void copy_to_others(std::span<const Buffer> buffers, int64_t begin, int64_t count);

// Where the part of `rank` begins.
int64_t offset_of(std::span<const int64_t> counts, int rank);

}  // namespace cohort::collective
