// Rows of sparse tensors in COO layout, for stacking.h. Tensors are on the CPU; results are
// coalesced.
#pragma once

#include <cstdint>
#include <vector>

#include "cohort/core/structure/tensor.h"
#include "cohort/data/iteration/positions.h"

namespace cohort::internal::sparse {

// Shapes: [rows, ..] -> [end - begin, ..].
Tensor slice(const Tensor& coo, int64_t begin, int64_t end);
// Shapes: [rows, ..] -> [..]; dense where nothing sparse is left.
Tensor select(const Tensor& coo, int64_t row);
Tensor gather(const Tensor& coo, const Positions& rows);
// Stacks parts of one shape along a new dimension 0.
Tensor stack(const std::vector<Tensor>& parts);
// Along dimension 0; the other sizes are equal.
Tensor concat(const std::vector<Tensor>& parts);
// A sparse tensor without values: shape[0] is 0.
Tensor empty(const std::vector<int64_t>& shape, DType dtype);

}  // namespace cohort::internal::sparse
