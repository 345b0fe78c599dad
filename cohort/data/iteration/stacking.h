// Converts elements to blocks and back, for structures of any form.
#pragma once

#include <cstdint>
#include <vector>

#include "cohort/core/structure/structure.h"
#include "cohort/data/iteration/positions.h"

namespace cohort::internal {

// Stacks `elements` (at least one) into a block. `indices` holds their positions in the sequence,
// for the message.
// Errors: InvalidArgument (form, kind, dtype or shape differ: names the path, both elements'
// indices and both shapes).
Structure stack_elements(const std::vector<Structure>& elements, const Positions& indices);

// Concatenates blocks, in order. `first_indices` holds the position of each block's first element.
// Errors: as stack_elements.
Structure concat_blocks(const std::vector<Structure>& blocks, const Positions& first_indices);

// The size of dimension 0, the same for all leaves of a block (the first leaf's is taken).
int64_t num_rows(const Structure& block);
// Element `row` of a block.
Structure select_row(const Structure& block, int64_t row);
// Elements [begin, end) of a block, sharing its storage.
Structure slice_rows(const Structure& block, int64_t begin, int64_t end);
// Some elements of a block, as a block: a view for a run, else one gather per leaf.
Structure gather_rows(const Structure& block, const Positions& rows);

}  // namespace cohort::internal
