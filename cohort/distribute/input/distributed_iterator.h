// Reads a distributed dataset: each call returns one batch for each replica of this process.
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
#include "cohort/core/handle.h"
#include "cohort/core/structure/optional.h"
#include "cohort/data/iteration/state.h"
#include "cohort/distribute/values/values.h"

namespace cohort::train {
class Trackable;
}

namespace cohort::distribute {

namespace internal_input {
struct Source;
enum class LastStep : int;
class StepReader;
class BatchSequence;
}  // namespace internal_input

// The batches of one pass over a DistributedDataset; it reads all input workers of this process in
// step. If one replica has no data left while others have, it gets a batch without rows: dimension
// 0 and unknown dimensions are 0, other dimensions and dtypes as in the spec. Exception: if all
// shapes are known, there is one worker, and the dataset is finite, such an incomplete last step is
// left out by all but get_next_as_optional. Movable, not copyable; a moved-from iterator can only
// be assigned to or destroyed.
// Thread safety: none: next, has_next, state, restore and saving from one thread at a time, else
// FailedPrecondition.
// Not for use inside a step, nor in a child of fork (FailedPrecondition).
class COHORT_API DistributedIterator {
 public:
  DistributedIterator(DistributedIterator&&) noexcept = default;
  DistributedIterator& operator=(DistributedIterator&&) noexcept = default;
  DistributedIterator(const DistributedIterator&) = delete;
  DistributedIterator& operator=(const DistributedIterator&) = delete;

  // The next batch, one component per replica; nullopt when no worker has data.
  // Errors: those of the dataset, which take their step's data with them (the following call
  // returns the next step), except for a missed read deadline, which consumes nothing. The error of
  // another process's input comes by its class and names the worker; for a missed read deadline it
  // is Aborted. FailedPrecondition (called in a replica, or in the scope of another strategy).
  std::optional<PerReplica<Structure>> next();
  // Whether next() has a batch, or an error to report. May have to read that batch ahead, which is
  // then kept for next(); states are still those before it.
  // Errors: FailedPrecondition, as next.
  bool has_next();
  // The next batch, as next. Errors: also OutOfRange at the end.
  PerReplica<Structure> get_next();
  // The next batch, but never leaves an incomplete last step out. Errors of the result's
  // get_value(): InvalidArgument (there is no batch).
  Optional<PerReplica<Structure>> get_next_as_optional();

  // The positions of the last batch's components in the order of the undistributed dataset, counted
  // in pieces from where this iterator was made or restored; see ordered_results.h.
  // Errors: FailedPrecondition (several workers that do not share the dataset by
  // AutoShardPolicy::DATA, so that the order is unknown; or no batch was read yet).
  std::vector<int64_t> positions() const;

  PerReplicaSpec element_spec() const;
  // The exact position between two steps: after restore on an iterator of the same dataset, the
  // same batches follow.
  data::IteratorState state() const;
  // Goes to a state's position. Where workers give pieces of the same batches (one worker,
  // AutoShardPolicy::DATA, hosted replicas) it fits any number of workers and replicas; other
  // states are of this task's workers alone. Errors: InvalidArgument (another dataset's state, or
  // of another number of workers), DataLoss (damaged); the iterator's position is then unchanged.
  void restore(const data::IteratorState& state);
  // For train::Checkpoint: the position, which stays valid when the iterator is moved.
  std::shared_ptr<train::Trackable> trackable() const;
  // The part that keeps its address when the iterator is moved.
  const std::shared_ptr<internal_input::StepReader>& reader() const { return reader_.pointer(); }

  // For range-for: a single pass from the current position.
  internal_input::BatchSequence begin();
  std::default_sentinel_t end() const { return {}; }

 private:
  friend class DistributedDataset;
  std::optional<PerReplica<Structure>> read(internal_input::LastStep last);
  void check_caller(const char* method) const;
  explicit DistributedIterator(std::shared_ptr<const internal_input::Source> source);

  // Checkpoints refer to it.
  internal::Handle<internal_input::StepReader, "DistributedIterator"> reader_;
};

namespace internal_input {
// The range of a range-for loop.
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
