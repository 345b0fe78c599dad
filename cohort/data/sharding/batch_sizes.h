// The number of rows of a dataset's batches, and the division of a global batch by the cyclic rule
// of Dataset::rebatch. (Distributed datasets divide by the rule of split_batches.h.)
#pragma once

#include <cstdint>
#include <vector>

#include "cohort/core/export.h"
#include "cohort/data/dataset.h"

namespace cohort::data {

// Returns num_workers * num_replicas_per_worker sizes that add up to the global batch and differ by
// at most one. A worker's list is worker 0's, rotated left by the number of replicas of the workers
// before it, so that each step of all workers together takes one global batch.
// Errors: InvalidArgument (a negative batch, workers or replicas below 1, worker_index outside [0,
// num_workers)).
COHORT_API std::vector<int64_t> batch_sizes_for_worker(int64_t global_batch_size,
                                                       int64_t num_workers,
                                                       int64_t num_replicas_per_worker,
                                                       int64_t worker_index);

inline constexpr int64_t kUnknownBatchSize = -1;

// The number of rows of each batch (the last one may have fewer), from the spec or, if it is
// unknown there, from the transformations after `batch`. kUnknownBatchSize if the leaves disagree,
// or if a transformation in between (map) may change it. Nothing is read, except as
// Dataset::element_spec does.
// Errors: InvalidArgument (elements without a batch dimension).
COHORT_API int64_t compute_batch_size(const Dataset& dataset);

}  // namespace cohort::data
