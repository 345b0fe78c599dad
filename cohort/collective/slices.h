// Adds the same slice of several buffers, in a fixed order.
#pragma once

#include <cstdint>
#include <span>

#include "cohort/core/structure/tensor.h"

namespace cohort::collective {

// The elements [begin, end) of `size` elements for member `rank` of `count`. The slices of all
// members together cover every element once, and each slice except the last begins and ends on a
// cache line.
struct SliceRange {
  int64_t begin = 0;
  int64_t end = 0;
};
SliceRange slice_of(int64_t size, int rank, int count);

// out[i] = sources[0][i] + sources[1][i] + ..., in this order for every i, so the result does not
// depend on how the range is divided. A null source counts as zeros; `out` may be one of the
// sources. float16 and bfloat16 are added in float32.
// Errors: InvalidArgument (a dtype that cannot be added).
void add_slices(void* out, std::span<const void* const> sources, int64_t count, DType dtype);

// Each of the buffers becomes the sum of all, as add_slices makes it: one pass over their memory.
// They must not overlap. Errors: those of add_slices.
void add_slices_in_place(std::span<void* const> buffers, int64_t count, DType dtype);

// Throws what add_slices would.
void check_can_add(DType dtype);

}  // namespace cohort::collective
