// Writes to some rows of a variable: the operations behind Variable::scatter_add and the like.
#pragma once

#include "cohort/core/structure/tensor.h"
#include "cohort/ops/indexed_slices.h"

namespace cohort::internal {

enum class ScatterOp { kAdd, kSub, kUpdate, kMin, kMax, kMul, kDiv };

// "scatter_add".
const char* scatter_name(ScatterOp op);

// `slices` detached, the indices [n] of int64 on the CPU, the values [n, ..] of `dtype`.
// `name` is the variable's, for messages.
// Errors: InvalidArgument (the variable has rank 0; shapes that do not fit; an index outside of its
// rows; a dtype that cannot be converted).
IndexedSlices checked_slices(const IndexedSlices& slices, at::IntArrayRef shape, DType dtype,
                             const char* operation, const std::string& name);

// target[indices[i]] = op(target[indices[i]], values[i]), one after another in the order of i, so
// that an index may come several times and the result is the same on every run.
// `slices`: as checked_slices returns them; its values do not share target's memory.
void scatter_rows(const Tensor& target, ScatterOp op, const IndexedSlices& slices);

}  // namespace cohort::internal
