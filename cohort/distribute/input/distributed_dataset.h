// A dataset that is distributed to the replicas of a strategy.
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
#include "cohort/core/handle.h"
#include "cohort/data/dataset.h"
#include "cohort/distribute/core/input_options.h"
#include "cohort/distribute/core/input_workers.h"
#include "cohort/distribute/input/distributed_iterator.h"
#include "cohort/distribute/input/input_context.h"
#include "cohort/distribute/values/values.h"

namespace cohort::internal {
class StrategyCore;
}

namespace cohort::distribute {

// Made by Strategy::experimental_distribute_dataset, distribute_datasets_from_function and
// get_distributed_dataset (strategies/get_distributed_dataset.h). Immutable; keeps the strategy
// alive.
// Thread safety: any thread.
class COHORT_API DistributedDataset {
 public:
  // Begins the next epoch. If other tasks read for the same steps, all make equally many iterators:
  // their parts belong to one order, and each epoch has an order of its own.
  DistributedIterator iterator() const;
  // The spec of the components. If some workers may run out of data before others, the number of
  // rows is unknown: replicas without data get batches without rows.
  PerReplicaSpec element_spec() const;
  // The number of steps of one epoch, data::kInfiniteCardinality or data::kUnknownCardinality. It
  // is the same in all tasks that read for the same steps: that of the task that ends last. If
  // there are such tasks, that of a part (auto_shard) is unknown.
  int64_t cardinality() const;
  // Text: the graph of each worker's pipeline, and how the data was divided between the workers.
  std::string explain() const;

  // Computes state = fn(state, batch) for every batch and returns the last state.
  // Errors: those of next(), and of fn.
  template <class State, class Fn>
  State reduce(State state, Fn&& fn) const {
    for (const PerReplica<Structure>& batch : *this) state = fn(std::move(state), batch);
    return state;
  }
  // Part `index` of each worker's elements, divided by the dataset's AutoShardPolicy.
  // Errors: as data::auto_shard.
  DistributedDataset auto_shard(int64_t num_shards, int64_t index) const;

  internal_input::BatchSequence begin() const;
  std::default_sentinel_t end() const { return {}; }

  // For the library's own use.
  explicit DistributedDataset(std::shared_ptr<const internal_input::Source> source)
      : source_(std::move(source)) {}
  const std::shared_ptr<internal::StrategyCore>& core() const;
  // Pass number `pass`, from its beginning; the first is 0, and iterator() makes the one after.
  DistributedIterator iterator_of_pass(uint64_t pass) const;

 private:
  internal::Handle<const internal_input::Source, "DistributedDataset"> source_;
};

struct DistributedDatasetOptions {
  InputOptions input = {};
  // Whether each batch is split into one piece per replica in sync. If not, elements are already
  // batches for one replica, and a worker's replicas take them in turn.
  bool split_batches = true;
};

}  // namespace cohort::distribute
