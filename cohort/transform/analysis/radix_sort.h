// Sorts short lists of float64 faster than comparisons do.
#pragma once

#include <vector>

namespace cohort::internal {

// Ascending; -0 before 0. No value is NaN. `scratch` is memory that is used again by the next call.
void radix_sort(std::vector<double>& values, std::vector<double>& scratch);

}  // namespace cohort::internal
