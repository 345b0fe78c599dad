// For tests of distributed input: batches as text.
#pragma once

#include <sstream>
#include <string>
#include <vector>

#include "cohort/distribute/input/distributed_dataset.h"
#include "cohort/distribute/strategies/strategy.h"

namespace cohort::distribute {

// Each worker reads `dataset`, whose elements are batches for one replica.
inline DistributedDataset from_function(const Strategy& strategy, const data::Dataset& dataset) {
  return strategy.distribute_datasets_from_function([&](const InputContext&) { return dataset; });
}

// "[0,1][2]": the numbers or strings of each replica's rows.
inline std::string text(const PerReplica<Structure>& batch) {
  std::ostringstream out;
  for (const Structure& piece : batch.values()) {
    out << '[';
    const int64_t rows = piece.leaf().sizes()[0];
    for (int64_t i = 0; i < rows; ++i) {
      if (i > 0) out << ',';
      if (piece.leaf().is_strings()) {
        out << piece.strings()[i];
      } else {
        out << piece.tensor()[i].item<int64_t>();
      }
    }
    out << ']';
  }
  return out.str();
}
inline std::vector<std::string> all(DistributedIterator& iterator) {
  std::vector<std::string> batches;
  while (const auto batch = iterator.next()) batches.push_back(text(*batch));
  return batches;
}
inline std::vector<std::string> all(const DistributedDataset& dataset) {
  DistributedIterator iterator = dataset.iterator();
  return all(iterator);
}

// `workers` input workers on CPU devices of their own, each feeding `replicas` devices.
inline InputWorkers cpu_workers(int workers, int replicas) {
  std::vector<InputWorker> list;
  for (int w = 0; w < workers; ++w) {
    InputWorker& worker = list.emplace_back();
    for (int r = 0; r < replicas; ++r) {
      worker.compute_devices.push_back("CPU:" + std::to_string(w * replicas + r));
    }
    worker.input_device = worker.compute_devices.front();
  }
  return InputWorkers(list);
}

inline data::Dataset with_policy(const data::Dataset& dataset, data::AutoShardPolicy policy) {
  return dataset.with_options({.experimental_distribute = {.auto_shard_policy = policy}});
}

// Of so many input workers, one replica each.
inline std::vector<InputContext> contexts(int workers) {
  std::vector<InputContext> list;
  for (int w = 0; w < workers; ++w) {
    list.push_back(
        {.num_input_pipelines = workers, .input_pipeline_id = w, .num_replicas_in_sync = workers});
  }
  return list;
}

}  // namespace cohort::distribute
