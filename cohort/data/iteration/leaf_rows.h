// Rows of one leaf, along its dimension 0.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cohort/core/structure/structure.h"
#include "cohort/data/iteration/positions.h"

namespace cohort::internal {

// Whether two leaves can be rows (`from` 0) or blocks (`from` 1) of one leaf.
bool can_join(const Leaf& a, const Leaf& b, size_t from);

int64_t num_rows_of_leaf(const Leaf& leaf);
Leaf select_leaf(const Leaf& leaf, int64_t row);
// A view for a run (for strings: of stride 1), else a copy of the rows.
Leaf gather_leaf(const Leaf& leaf, const Positions& rows);

}  // namespace cohort::internal
