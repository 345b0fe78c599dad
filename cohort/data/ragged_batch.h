// TensorFlow's older names of Dataset::ragged_batch and Dataset::sparse_batch, for apply:
//
//   dataset.apply(tf::data::experimental::dense_to_ragged_batch(32));
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "cohort/data/dataset.h"

namespace cohort::data::experimental {

// Errors: as Dataset::ragged_batch.
inline auto dense_to_ragged_batch(int64_t batch_size, BatchOptions options = {}) {
  return [=](const Dataset& dataset) { return dataset.ragged_batch(batch_size, options); };
}

// Errors: as Dataset::sparse_batch.
inline auto dense_to_sparse_batch(int64_t batch_size, std::vector<int64_t> row_shape) {
  return [batch_size, row_shape = std::move(row_shape)](const Dataset& dataset) {
    return dataset.sparse_batch(batch_size, row_shape);
  };
}

}  // namespace cohort::data::experimental
