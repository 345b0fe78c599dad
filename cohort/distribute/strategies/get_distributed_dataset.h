// Distributes datasets to input workers of the caller, in place of those of the strategy.
//
//   const InputWorkers workers{{.input_device = "CPU:0", .compute_devices = {"CPU:0", "CPU:1"}}};
//   auto dist_dataset = get_distributed_dataset(dataset, workers, strategy);
#pragma once

#include <vector>

#include "cohort/core/export.h"
#include "cohort/distribute/input/distributed_dataset.h"
#include "cohort/distribute/strategies/strategy.h"

namespace cohort::distribute {

// Distributes like Strategy::experimental_distribute_dataset, to input workers of the caller. Each
// worker has a pipeline; its auto_shard_policy decides what it reads. Replicas of worker 0 come
// first.
// Splitting: over N replicas in sync, a batch of n rows becomes N pieces of ceil(n / N) rows, the
// last ones smaller or empty. Pieces are views, so memory does not grow with the number of
// replicas. One piece for each of the worker's replicas is prepared ahead, and
// experimental_per_replica_buffer_size more for each, at least (data/read_ahead.h).
// Errors: as Strategy::experimental_distribute_dataset; InvalidArgument (`workers` do not feed the
// strategy's devices, in their order, each as many).
COHORT_API DistributedDataset
get_distributed_dataset(const data::Dataset& dataset, const InputWorkers& workers,
                        const Strategy& strategy, const DistributedDatasetOptions& options = {});

// Distributes like Strategy::distribute_datasets_from_function, to input workers of the caller:
// fn(contexts[i]) makes the dataset of worker i, whose replicas take its elements in turn.
// Errors: InvalidArgument (the number of contexts is not the number of workers; as above), what fn
// throws.
COHORT_API DistributedDataset
get_distributed_datasets_from_function(const DatasetFunction& fn, const InputWorkers& workers,
                                       const std::vector<InputContext>& contexts,
                                       const Strategy& strategy, const InputOptions& options = {});

}  // namespace cohort::distribute
