// Distributes datasets: divides them between the input workers of all tasks, and their batches
// between replicas. The calls behind those of Strategy.
#pragma once

#include <memory>
#include <vector>

#include "cohort/distribute/input/distributed_dataset.h"

namespace cohort::internal {

class StrategyCore;

// All of these are COLLECTIVE over the tasks of the strategy.

// Errors: as Strategy::experimental_distribute_dataset.
distribute::DistributedDataset distribute_dataset(const std::shared_ptr<StrategyCore>& core,
                                                  const data::Dataset& dataset,
                                                  const distribute::InputOptions& options);
// Errors: as Strategy::distribute_datasets_from_function.
distribute::DistributedDataset distribute_from_function(const std::shared_ptr<StrategyCore>& core,
                                                        const distribute::DatasetFunction& fn,
                                                        const distribute::InputOptions& options);

// The same, to workers of the caller. The program's counters and times of distributed datasets do
// not know of these.
// Errors: as get_distributed_dataset.
distribute::DistributedDataset distribute_to_workers(
    const std::shared_ptr<StrategyCore>& core, const data::Dataset& dataset,
    const distribute::InputWorkers& workers,
    const distribute::DistributedDatasetOptions& options = {});
// Errors: as get_distributed_datasets_from_function.
distribute::DistributedDataset datasets_from_function(
    const std::shared_ptr<StrategyCore>& core, const distribute::DatasetFunction& fn,
    const distribute::InputWorkers& workers, const std::vector<distribute::InputContext>& contexts,
    const distribute::InputOptions& options);
// To the workers of the strategy.
distribute::DistributedDataset datasets_from_function(const std::shared_ptr<StrategyCore>& core,
                                                      const distribute::DatasetFunction& fn,
                                                      const distribute::InputOptions& options);

}  // namespace cohort::internal
