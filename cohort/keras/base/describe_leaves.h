// What a layer was given, for the text of an error.
#pragma once

#include <string>

#include "cohort/core/structure/structure.h"

namespace cohort::internal {

// "float32 [2,3], int64 [2]".
std::string describe_leaves(const Structure& inputs);

}  // namespace cohort::internal
