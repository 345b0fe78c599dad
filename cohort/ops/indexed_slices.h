// Some rows of a tensor: what tapes give for embeddings, and what Variable::scatter_add takes.
//
//   table.scatter_add({.values = constant({{1., 1.}}), .indices = constant({2})});
#pragma once

#include <optional>
#include <vector>

#include "cohort/core/export.h"
#include "cohort/core/structure/tensor.h"

namespace cohort {

// values[i] belongs to row indices[i]; an index may come several times.
// Shapes: values [n, ..], indices [n] of int32 or int64; dense_shape: that of the whole tensor.
struct IndexedSlices {
  Tensor values;
  Tensor indices;
  std::optional<std::vector<int64_t>> dense_shape = std::nullopt;
};

// The rows of a sparse gradient, in its order, without a copy.
// Errors: InvalidArgument (not sparse in dimension 0 alone).
COHORT_API IndexedSlices indexed_slices(const Tensor& sparse);

}  // namespace cohort
