// The order of NumPy's RandomState(seed).shuffle, by which Keras shuffles files and positions.
#pragma once

#include <cstdint>
#include <vector>

namespace cohort::internal {

// The permutation: element i of the shuffled list is element result[i] of the list.
// Errors: InvalidArgument (a seed above 2^32 - 1, which NumPy refuses).
std::vector<int64_t> numpy_shuffled(int64_t size, uint64_t seed);

}  // namespace cohort::internal
