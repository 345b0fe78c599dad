// Specs of what functions return, found out by calling them.
#pragma once

#include "cohort/core/structure/spec.h"
#include "cohort/core/structure/structure.h"

namespace cohort::internal {

// The spec of `result`, which a function returned for `input`, with a dimension unknown where it is
// unknown in `input_spec` and as large as there: the rows of a batch, most of all.
StructureSpec generalize(const Structure& result, const StructureSpec& input_spec,
                         const Structure& input);

}  // namespace cohort::internal
