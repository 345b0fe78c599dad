// Makes parts of initial values that are known by their description (KnownValues).
#pragma once

#include <cstdint>
#include <vector>

#include "cohort/core/structure/tensor.h"
#include "cohort/distribute/core/variable_spec.h"

namespace cohort::internal {

// Whether a description with random values can be of this dtype: floating-point ones.
bool has_known_random_values(DType dtype);

// The place of the random stream after all `count` elements of the variable. Passes over truncated
// normals one by one, without drawing them.
uint64_t position_after(const distribute::KnownValues& values, int64_t count, DType dtype);

// The elements of a variable of `dtype` from number `first` on, as the whole would have them.
// Errors: InvalidArgument (a dtype that has none; what the description's numbers make of it).
Tensor make_known_values(const distribute::KnownValues& values, const std::vector<int64_t>& shape,
                         int64_t first, DType dtype);

}  // namespace cohort::internal
