// RaggedTensors among the values that reduce and gather combine leaf by leaf.
#pragma once

#include <cstdint>

#include "cohort/core/structure/structure.h"

namespace cohort::internal {

// Errors: Unimplemented (there is a RaggedTensor in the value: the rows of two replicas cannot be
// added); InvalidArgument (there are strings). `what` is the call.
void check_can_reduce_rows(const char* what, const Structure& value);

// For a gather, before and after: RaggedTensors with the lengths of rows in place of row_splits,
// since lengths can be concatenated. Errors: Unimplemented (a RaggedTensor and an axis other than
// 0; a sparse tensor); InvalidArgument (a broken RaggedTensor; an undefined tensor).
Structure with_row_lengths(const char* what, const Structure& value, int64_t axis);
Structure with_row_splits(const Structure& gathered);

}  // namespace cohort::internal
