// Sums that lose nothing.
#pragma once

#include <string>
#include <vector>

#include "cohort/core/structure/structure.h"
#include "cohort/core/structure/tensor.h"

namespace cohort::internal {

// The sum of tensors of one shape, in the first one's dtype. It is taken in int64, float64 or
// complex128.
// Errors: InvalidArgument (the dtype cannot hold it); the text begins with `what`.
Tensor exact_sum(const std::vector<Leaf>& leaves, const std::string& what);

}  // namespace cohort::internal
