// Adds values up in the order of a SumTree.
#pragma once

#include <cstdint>
#include <span>

#include "cohort/collective/sum_tree.h"
#include "cohort/core/structure/tensor.h"

namespace cohort::collective {

// The dtype in which sums of values of `dtype` wait to be added to others: float32 of short floats,
// which are rounded once, when their sum is whole; else the same.
DType sum_dtype(DType dtype);

// Writes the sum of `sources`, `count` elements each, to each of `targets`, which may be sources
// where the dtypes are the same. A null source is left out; if all are null, zeros. of_sums: the
// dtype of the targets, which is `dtype` or sum_dtype(dtype).
// Errors: InvalidArgument (a dtype that cannot be added).
void add_in_tree(std::span<void* const> targets, std::span<const void* const> sources,
                 const Additions& additions, int64_t count, DType dtype, DType of_sums);
inline void add_in_tree(std::span<void* const> targets, std::span<const void* const> sources,
                        const Additions& additions, int64_t count, DType dtype) {
  add_in_tree(targets, sources, additions, count, dtype, dtype);
}

}  // namespace cohort::collective
