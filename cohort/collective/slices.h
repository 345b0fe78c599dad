// Adding up the same slice of several buffers, in a fixed order.
#pragma once

#include <cstdint>
#include <span>

#include "cohort/core/tensor.h"

namespace cohort::collective {

// [begin, end) of `size` elements for member `rank` of `count`: all slices together cover everything
// once, and each but the last begins and ends on a cache line.
struct SliceRange {
  int64_t begin = 0;
  int64_t end = 0;
};
SliceRange slice_of(int64_t size, int rank, int count);

// out[i] = sources[0][i] + sources[1][i] + ..., in this order for every i, so that the result does
// not depend on how the range is cut. A null source counts as zeros; `out` may be one of them.
// float16 and bfloat16 add up in float32.
// Errors: InvalidArgument (a dtype that cannot be added).
void add_slices(void* out, std::span<const void* const> sources, int64_t count, DType dtype);

// Throws what add_slices would.
void check_can_add(DType dtype);

}  // namespace cohort::collective
