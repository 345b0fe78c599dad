// The answers of functions that are asked whether an element counts.
#pragma once

#include "cohort/core/structure/structure.h"

namespace cohort::internal {

// Errors: InvalidArgument (neither a bool nor a bool scalar tensor).
bool is_true(const Structure& answer);

}  // namespace cohort::internal
