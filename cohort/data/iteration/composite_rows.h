// Rows of RaggedTensors and of sparse tensors (core/composite.h), for stacking.h. A composite is
// the whole structure that is passed here.
#pragma once

#include <cstdint>
#include <vector>

#include "cohort/core/structure/structure.h"
#include "cohort/data/iteration/positions.h"

namespace cohort::internal {

// Whether there is a tensor in COO layout, marked or not.
bool has_sparse_leaf(const Structure& structure);
// The same structure, with a mark around tensors in COO layout that have none. All that users' code
// makes passes through it before it goes on.
Structure with_marked_sparse(Structure structure);

// The same batch with dense vectors in place of sparse ones: rows of a vector are scalars, which
// are dense, and so are blocks of them.
Structure with_dense_vectors(Structure batch);

int64_t num_rows_of_composite(const Structure& block);
// Row `row`: of a RaggedTensor a marked row, or a RaggedTensor of one dimension less; of a row its
// element without a mark.
Structure select_composite(const Structure& block, int64_t row);
Structure slice_composite(const Structure& block, int64_t begin, int64_t end);
Structure gather_composite(const Structure& block, const Positions& rows);

// Whether two of one form can be elements of one batch (`stacked`) or parts of one block.
bool joinable(const Structure& a, const Structure& b, bool stacked);
// Rows become a RaggedTensor, and RaggedTensors one with a ragged dimension more.
Structure stack_composites(const std::vector<Structure>& elements);
Structure concat_composites(const std::vector<Structure>& blocks);

}  // namespace cohort::internal
