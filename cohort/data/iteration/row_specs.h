// The specs of batches and of their rows, composites (core/composite.h) among them.
#pragma once

#include <cstdint>

#include "cohort/core/structure/spec.h"

namespace cohort::internal {

// The spec of `rows` (or kUnknownDim) elements of this spec stacked.
StructureSpec stacked_spec(const StructureSpec& element, int64_t rows);
// The spec of one row of a batch. Errors: InvalidArgument (a scalar).
StructureSpec row_spec(const StructureSpec& batch);
// The spec of a batch with that number of rows.
StructureSpec spec_with_rows(const StructureSpec& batch, int64_t rows);
// The number of rows of such batches, where it is known; else kUnknownDim.
int64_t spec_rows(const StructureSpec& batch);

// The structure of the spec's form without rows: empty(leaf) of each leaf, which has a shape whose
// dimension 0 is to be 0.
Structure empty_rows(const StructureSpec& batch, FunctionRef<Leaf(const TensorSpec&)> empty);

}  // namespace cohort::internal
