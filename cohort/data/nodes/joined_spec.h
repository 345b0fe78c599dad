// The spec of elements that come from several datasets.
#pragma once

#include <optional>

#include "cohort/core/error.h"
#include "cohort/core/structure/spec.h"
#include "cohort/data/graph/node.h"

namespace cohort::internal {

// What fits the elements of both. Errors: InvalidArgument (another form or dtype; `stage` begins
// the text).
inline StructureSpec joined_spec(const std::string& stage, const StructureSpec& first,
                                 const StructureSpec& second) {
  try {
    return first.most_specific_compatible(second);
  } catch (const InvalidArgumentError& error) {
    throw InvalidArgumentError(str(stage, ": the elements of one dataset are ", first,
                                   ", those of the other ", second, ": ", error.what(),
                                   "; map one of them to the form and dtypes of the other"));
  }
}

}  // namespace cohort::internal
