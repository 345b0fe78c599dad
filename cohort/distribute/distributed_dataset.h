// A dataset shared out to the replicas of a strategy.
//
//   auto dist_dataset = strategy.experimental_distribute_dataset(dataset);   // of global batches
//   for (const auto& batch : dist_dataset) strategy.run(train_step, batch);
//
//   DistributedIterator it = dist_dataset.iterator();
//   auto batch = it.get_next();
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cohort/core/export.h"
#include "cohort/data/dataset.h"
#include "cohort/distribute/distributed_iterator.h"
#include "cohort/distribute/input_context.h"
#include "cohort/distribute/input_options.h"
#include "cohort/distribute/input_workers.h"
#include "cohort/distribute/strategy.h"
#include "cohort/distribute/values.h"

namespace cohort::distribute {

// Made by Strategy::experimental_distribute_dataset, distribute_datasets_from_function and the
// functions below. Immutable; keeps the strategy alive.
// Thread safety: any thread.
class COHORT_API DistributedDataset {
 public:
  DistributedIterator iterator() const;
  // Of the components. Where workers may run out of data one before another, the number of rows is
  // open: those that have none left get batches of no rows.
  PerReplicaSpec element_spec() const;
  // The steps of one pass; data::kInfiniteCardinality, data::kUnknownCardinality.
  int64_t cardinality() const;
  // Which worker reads what: the graph of each, and how the data was divided between them.
  std::string explain() const;

  // state = fn(state, batch) for every batch; the last state. Errors: those of next(), and of fn.
  template <class State, class Fn>
  State reduce(State state, Fn&& fn) const {
    for (const PerReplica<Structure>& batch : *this) state = fn(std::move(state), batch);
    return state;
  }
  // The part of `index` of each worker's elements, by the dataset's AutoShardPolicy.
  // Errors: as data::auto_shard.
  DistributedDataset auto_shard(int64_t num_shards, int64_t index) const;

  internal_input::BatchSequence begin() const;
  std::default_sentinel_t end() const { return {}; }

  // For the library's own use.
  explicit DistributedDataset(std::shared_ptr<const internal_input::Source> source)
      : source_(std::move(source)) {}

 private:
  std::shared_ptr<const internal_input::Source> source_;
};

struct DistributedDatasetOptions {
  InputOptions input = {};
  // Cuts each batch into a piece for each replica in sync. Without, elements are batches of one
  // replica already, which a worker's replicas take in turn.
  bool split_batches = true;
};

// What Strategy::experimental_distribute_dataset does, for input workers of one's own: each has a
// pipeline, of which auto_shard_policy says what it reads. Replicas of worker 0 come first.
// Splitting: a batch of n rows over N replicas in sync becomes N pieces of ceil(n / N) rows, the
// last ones smaller or empty: views, so that memory does not grow with the number of replicas. As
// many pieces as the worker has replicas are made ahead, and experimental_per_replica_buffer_size
// more for each.
// Errors: as Strategy::experimental_distribute_dataset; InvalidArgument (`workers` do not feed the
// strategy's devices, in their order, each as many).
COHORT_API DistributedDataset
get_distributed_dataset(const data::Dataset& dataset, const InputWorkers& workers,
                        const Strategy& strategy, const DistributedDatasetOptions& options = {});

// What Strategy::distribute_datasets_from_function does, for input workers of one's own:
// fn(contexts[i]) makes what worker i reads, and its replicas take its elements in turn.
// Errors: InvalidArgument (one context a worker is needed; as above), what fn throws.
COHORT_API DistributedDataset
get_distributed_datasets_from_function(const DatasetFunction& fn, const InputWorkers& workers,
                                       const std::vector<InputContext>& contexts,
                                       const Strategy& strategy, const InputOptions& options = {});

}  // namespace cohort::distribute
