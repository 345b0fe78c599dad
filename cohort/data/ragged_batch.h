// TensorFlow's older name of Dataset::ragged_batch, for apply:
//
//   dataset.apply(tf::data::experimental::dense_to_ragged_batch(32));
#pragma once

#include <cstdint>

#include "cohort/data/dataset.h"

namespace cohort::data::experimental {

// Errors: as Dataset::ragged_batch.
inline auto dense_to_ragged_batch(int64_t batch_size, BatchOptions options = {}) {
  return [=](const Dataset& dataset) { return dataset.ragged_batch(batch_size, options); };
}

}  // namespace cohort::data::experimental
