// The buckets of a histogram as TensorBoard computes them.
#pragma once

#include <cstdint>
#include <vector>

#include "cohort/core/structure/tensor.h"

namespace cohort::internal {

// [buckets][3]: left edge, right edge, and how many values lie between; the last bucket has its
// right edge. Where all values are equal, all edges are that value, and the last bucket has all of
// them. Without values all are 0. Values that are not finite are left out.
// Shapes: values [..] of real numbers on any device. buckets below 0 count as 0.
std::vector<double> histogram_buckets(const Tensor& values, int64_t buckets);

}  // namespace cohort::internal
