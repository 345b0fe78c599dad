// A dataset split over the replicas of a strategy.
//
//   auto dist_dataset = strategy.experimental_distribute_dataset(dataset);   // of global batches
//   for (const auto& batch : dist_dataset) strategy.run(train_step, batch);
//
//   DistributedIterator it = dist_dataset.iterator();
//   auto batch = it.get_next();
#pragma once

#include <iterator>
#include <memory>
#include <optional>

#include "cohort/data/dataset.h"
#include "cohort/distribute/strategy.h"
#include "cohort/distribute/values.h"

namespace cohort::train {
class Trackable;
}

namespace cohort::distribute {

enum class InputReplicationMode {
  PER_WORKER,   // one pipeline a worker feeds all of its replicas
  PER_REPLICA,  // one a replica: for distribute_datasets_from_function only
};

struct InputOptions {
  // Whether elements are moved to the replicas' devices; missing: yes.
  std::optional<bool> experimental_fetch_to_device = std::nullopt;
  InputReplicationMode experimental_replication_mode = InputReplicationMode::PER_WORKER;
  // With PER_REPLICA only: the pipeline itself runs on the replica's device.
  bool experimental_place_dataset_on_device = false;
  // Batches made ahead for each replica; 0 makes each when it is asked for.
  int experimental_per_replica_buffer_size = 1;
};

namespace internal_input {
struct Source;
class BatchSequence;
}  // namespace internal_input

// The batches of one pass over a DistributedDataset. A global batch of n rows over N replicas
// becomes pieces of ceil(n / N) rows, trailing pieces smaller or empty; pieces are slices of the
// batch, not copies, where the replica's device is the host.
// Thread safety: none. Not for use inside a step.
class DistributedIterator {
 public:
  // The next global batch, one component a replica; nothing at the end.
  // Errors: the dataset's; InvalidArgument (leaves of a batch with different numbers of rows),
  // FailedPrecondition (called in a replica).
  std::optional<PerReplica<Structure>> next();
  // The same. Errors: OutOfRange at the end.
  PerReplica<Structure> get_next();
  std::optional<PerReplica<Structure>> get_next_as_optional() { return next(); }

  PerReplicaSpec element_spec() const;
  // The exact position: after restore on an iterator of the same dataset the same batches follow.
  data::IteratorState state() const;
  // Errors: InvalidArgument (another dataset's state).
  void restore(const data::IteratorState& state);
  // For train::Checkpoint: the position, wherever the iterator is moved.
  std::shared_ptr<train::Trackable> trackable() const;

  // A single pass from the current position.
  internal_input::BatchSequence begin();
  std::default_sentinel_t end() const { return {}; }

 private:
  friend class DistributedDataset;
  explicit DistributedIterator(std::shared_ptr<const internal_input::Source> source);

  std::shared_ptr<const internal_input::Source> source_;
  data::DatasetIterator iterator_;
};

// Immutable; keeps the strategy alive.
// Thread safety: any thread.
class DistributedDataset {
 public:
  // Called by Strategy::experimental_distribute_dataset.
  // Errors: InvalidArgument (elements without a batch dimension; options that do not fit),
  // Unimplemented (PER_REPLICA).
  DistributedDataset(const Strategy& strategy, const data::Dataset& dataset,
                     const InputOptions& options);

  DistributedIterator iterator() const;
  PerReplicaSpec element_spec() const;
  // Global batches in one pass; data::kInfiniteCardinality, data::kUnknownCardinality.
  int64_t cardinality() const;

  internal_input::BatchSequence begin() const;
  std::default_sentinel_t end() const { return {}; }

 private:
  std::shared_ptr<const internal_input::Source> source_;
};

namespace internal_input {
// What a range-for walks.
class BatchSequence {
 public:
  using value_type = PerReplica<Structure>;
  using difference_type = std::ptrdiff_t;

  explicit BatchSequence(DistributedIterator iterator);
  explicit BatchSequence(DistributedIterator* iterator);
  const PerReplica<Structure>& operator*() const { return *batch_; }
  BatchSequence& operator++();
  void operator++(int) { ++*this; }
  bool operator==(std::default_sentinel_t) const { return !batch_; }

 private:
  std::shared_ptr<DistributedIterator> owned_;
  DistributedIterator* iterator_;
  std::optional<PerReplica<Structure>> batch_;
};
}  // namespace internal_input

}  // namespace cohort::distribute
