// The number at which a coordinator begins to count.
#pragma once

#include <cstdint>

namespace cohort::internal {

// No number of a later coordinator of the program is one of an earlier one: ps tasks and workers
// tell by them what is late.
struct CoordinatorNumbers {
  uint64_t closure = 1;
  uint64_t session = 1;  // of a generation
};

}  // namespace cohort::internal
