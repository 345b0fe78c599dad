// Reads a distributed dataset: a batch for each replica of this process at a time.
//
//   DistributedIterator it = dist_dataset.iterator();
//   while (auto batch = it.next()) strategy.run(train_step, *batch);
#pragma once

#include <cstdint>
#include <iterator>
#include <memory>
#include <optional>
#include <vector>

#include "cohort/core/export.h"
#include "cohort/core/optional.h"
#include "cohort/data/state.h"
#include "cohort/distribute/values.h"

namespace cohort::train {
class Trackable;
}

namespace cohort::distribute {

namespace internal_input {
struct Source;
class StepReader;
class BatchSequence;
}  // namespace internal_input

// The batches of one pass over a DistributedDataset, of all input workers of this process in step.
// Where one replica has no data left while others have, it gets a batch of no rows: dimension 0 and
// unknown dimensions are 0, others and dtypes as the spec says. Where every shape is known, there
// is one worker, and the dataset is finite, such an incomplete last step is left out instead.
// Movable, not copyable; what was moved from can only be assigned to or destroyed.
// Thread safety: none. Not for use inside a step.
class COHORT_API DistributedIterator {
 public:
  DistributedIterator(DistributedIterator&&) noexcept = default;
  DistributedIterator& operator=(DistributedIterator&&) noexcept = default;
  DistributedIterator(const DistributedIterator&) = delete;
  DistributedIterator& operator=(const DistributedIterator&) = delete;

  // The next batch, one component a replica; nothing once no worker has data.
  // Errors: the dataset's, which take their step's data with them (the following call gives the
  // next step's), but for a read deadline that was missed, which takes nothing; Aborted (the same
  // happened to the input of another process of the strategy: names the worker); FailedPrecondition
  // (called in a replica, or in the scope of another strategy).
  std::optional<PerReplica<Structure>> next();
  // The same. Errors: OutOfRange at the end.
  PerReplica<Structure> get_next();
  // The same; its get_value() is InvalidArgument where there is none.
  Optional<PerReplica<Structure>> get_next_as_optional() { return next(); }

  // Where the components of the batch that came last stand in the order of the undistributed
  // dataset, counted in pieces from where this iterator was made or its restore() was called: see
  // ordered_results.h. Errors: FailedPrecondition (several workers that do not share the dataset by
  // AutoShardPolicy::DATA: then nobody knows; or no batch yet).
  std::vector<int64_t> positions() const;

  PerReplicaSpec element_spec() const;
  // The exact position: after restore on an iterator of the same dataset the same batches follow.
  data::IteratorState state() const;
  // The state of one worker's iterator fits iterators for any number of replicas, or no fewer where
  // it was taken in the middle of a step, after a read deadline that was missed.
  // Errors: InvalidArgument (another dataset's state, or of another number of workers), DataLoss
  // (damaged); the iterator then stands where it did.
  void restore(const data::IteratorState& state);
  // For train::Checkpoint: the position, wherever the iterator is moved.
  std::shared_ptr<train::Trackable> trackable() const;

  // A single pass from the current position.
  internal_input::BatchSequence begin();
  std::default_sentinel_t end() const { return {}; }

 private:
  friend class DistributedDataset;
  explicit DistributedIterator(std::shared_ptr<const internal_input::Source> source);

  std::shared_ptr<internal_input::StepReader> reader_;  // checkpoints refer to it
};

namespace internal_input {
// What a range-for walks.
class COHORT_API BatchSequence {
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
