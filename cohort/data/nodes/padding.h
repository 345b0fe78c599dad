// Elements of different shapes as one block.
#pragma once

#include <vector>

#include "cohort/core/structure/spec.h"
#include "cohort/core/structure/structure.h"
#include "cohort/data/iteration/positions.h"

namespace cohort::internal {

// One for each leaf: the shape that elements are padded to, kUnknownDim for the longest there is;
// empty for all of them so.
using PaddedShapes = std::vector<std::vector<int64_t>>;

// The padding value of each leaf of elements like `spec`: `given` is nothing (0, false, ""), a
// scalar for all, or a structure of scalars.
// Errors: InvalidArgument (another form or kind, no scalar, not exact in the leaf's dtype).
std::vector<Leaf> padding_values(const Structure& element, const std::optional<Structure>& given);

// Errors: InvalidArgument (elements of such a spec cannot be padded so: as padding_values, and as
// pad_and_stack where the spec knows enough to tell).
void check_padding(const StructureSpec& spec, const PaddedShapes& shapes,
                   const std::optional<Structure>& padding);

// The elements, padded at the end of each dimension and stacked. `indices` says where each stands,
// for the message.
// Errors: InvalidArgument (form, kind, dtype or rank differ; a dimension longer than its padded
// shape: names the element and the shapes).
Structure pad_and_stack(const std::vector<Structure>& elements, const PaddedShapes& shapes,
                        const std::vector<Leaf>& padding, const Positions& indices);

}  // namespace cohort::internal
