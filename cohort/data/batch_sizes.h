// How many rows the batches of a dataset have, and how a global batch is divided by the cyclic rule
// of Dataset::rebatch. (Distributed datasets divide by the rule of split_batches.h.)
#pragma once

#include <cstdint>
#include <vector>

#include "cohort/core/export.h"
#include "cohort/data/dataset.h"

namespace cohort::data {

// num_workers * num_replicas_per_worker sizes that add up to the global batch and differ by one at
// most; a worker's list is worker 0's rotated left by its replicas before, so that each step of all
// workers together takes a global batch.
// Errors: InvalidArgument (a negative batch, workers or replicas below 1, worker_index outside
// [0, num_workers)).
COHORT_API std::vector<int64_t> batch_sizes_for_worker(int64_t global_batch_size,
                                                       int64_t num_workers,
                                                       int64_t num_replicas_per_worker,
                                                       int64_t worker_index);

inline constexpr int64_t kUnknownBatchSize = -1;

// The rows of each batch (the last one may have fewer), from the spec or, where it leaves them
// open, from the transformations after `batch`; kUnknownBatchSize where the leaves disagree or
// something in between (map) may change them. Nothing is read, but see Dataset::element_spec.
// Errors: InvalidArgument (elements without a batch dimension).
COHORT_API int64_t compute_batch_size(const Dataset& dataset);

}  // namespace cohort::data
