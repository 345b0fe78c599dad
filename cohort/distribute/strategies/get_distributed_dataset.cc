#include "cohort/distribute/strategies/get_distributed_dataset.h"

#include "cohort/distribute/input/distribute_dataset.h"

namespace cohort::distribute {

DistributedDataset get_distributed_dataset(const data::Dataset& dataset,
                                           const InputWorkers& workers, const Strategy& strategy,
                                           const DistributedDatasetOptions& options) {
  return internal::distribute_to_workers(strategy.core(), dataset, workers, options);
}

DistributedDataset get_distributed_datasets_from_function(const DatasetFunction& fn,
                                                          const InputWorkers& workers,
                                                          const std::vector<InputContext>& contexts,
                                                          const Strategy& strategy,
                                                          const InputOptions& options) {
  return internal::datasets_from_function(strategy.core(), fn, workers, contexts, options);
}

}  // namespace cohort::distribute
