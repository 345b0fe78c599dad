#include "cohort/distribute/distributed_iterator.h"

#include "cohort/core/phase.h"
#include "cohort/data/dataset_reader.h"
#include "cohort/data/input_deadline.h"
#include "cohort/distribute/context_stack.h"
#include "cohort/distribute/dummy_batch.h"
#include "cohort/distribute/input_source.h"
#include "cohort/train/trackable.h"

namespace cohort::distribute {

using internal::str;
using internal_input::BatchSequence;
using internal_input::ElementOrder;
using internal_input::Source;

namespace {

// What the replicas of this process get in one step; a missing element is the end of a pipeline.
using Step = c10::SmallVector<std::optional<Structure>, 4>;

// Takes an element for each replica. Where one fails the others' are taken all the same, so that
// workers and replicas stay in step, and its error goes on.
Step read_step(const Source& source, std::vector<data::DatasetIterator>& iterators) {
  Step step;
  std::exception_ptr error;
  for (size_t worker = 0; worker < iterators.size(); ++worker) {
    for (size_t replica = 0; replica < source.num_replicas(worker); ++replica) {
      std::optional<Structure>& element = step.emplace_back();
      try {
        element = iterators[worker].next();
      } catch (...) {
        if (!error) error = std::current_exception();
      }
    }
  }
  if (error) std::rethrow_exception(error);
  return step;
}

Structure on_device(Structure batch, const std::vector<c10::Device>& devices, size_t replica) {
  if (devices.empty() || devices[replica].is_cpu()) return batch;
  return batch.map([&](const Leaf& leaf) -> Leaf {
    return leaf.is_strings() ? leaf : Leaf(leaf.tensor().to(devices[replica]));
  });
}

}  // namespace

DistributedIterator::DistributedIterator(std::shared_ptr<const Source> source)
    : source_(std::move(source)) {
  const uint64_t pass = source_->passes.fetch_add(1);
  for (size_t worker = 0; worker < source_->pipelines.size(); ++worker) {
    const data::Dataset& pipeline = source_->pipelines[worker];
    iterators_.emplace_back(
        pipeline.node(),
        internal::IteratorContext{
            .epoch = pass,
            .worker = static_cast<uint64_t>(source_->numbering.first) + worker,
            .deterministic = pipeline.options().experimental_deterministic.value_or(true)});
  }
}

std::optional<PerReplica<Structure>> DistributedIterator::next() {
  internal::require_cross_replica("DistributedIterator::next",
                                  "next outside of the step and pass the batch to run");
  const internal::ScopedPhase phase(profiler::Phase::kInput);
  ++steps_;  // also where the step fails
  Step step;
  try {
    step = read_step(*source_, iterators_);
  } catch (const internal::InputDeadlineExceeded&) {
    --steps_;  // its batch is still to come
    throw;
  }
  const auto present = [](const auto& element) { return element.has_value(); };
  const bool any = std::any_of(step.begin(), step.end(), present);
  const bool all = std::all_of(step.begin(), step.end(), present);
  const bool goes_on =
      source_->core->any_process_has_data(any) && (all || source_->fills_up_last_step());
  if (!goes_on) {
    --steps_;  // it was none
    return std::nullopt;
  }

  std::optional<Structure> dummy;
  if (!all) dummy = internal::dummy_batch(source_->component_spec());
  PerReplica<Structure>::Values batch;
  for (size_t i = 0; i < step.size(); ++i) {
    batch.push_back(on_device(step[i] ? *std::move(step[i]) : *dummy, source_->devices, i));
  }
  return PerReplica<Structure>(std::move(batch));
}

PerReplica<Structure> DistributedIterator::get_next() {
  if (auto batch = next()) return *std::move(batch);
  throw OutOfRangeError("DistributedIterator::get_next: the dataset is at its end");
}

std::vector<int64_t> DistributedIterator::positions() const {
  if (source_->order == ElementOrder::kUnknown) {
    throw FailedPreconditionError(
        str("DistributedIterator::positions: the order of the elements of ", iterators_.size(),
            " input workers is not known (", source_->division,
            "); let them share the dataset by AutoShardPolicy::DATA"));
  }
  if (steps_ == 0) {
    throw FailedPreconditionError("DistributedIterator::positions: there was no batch yet");
  }
  std::vector<int64_t> positions;
  for (size_t worker = 0; worker < iterators_.size(); ++worker) {
    const auto replicas = static_cast<int64_t>(source_->num_replicas(worker));
    const int64_t pipeline = source_->numbering.first + static_cast<int64_t>(worker);
    for (int64_t i = 0; i < replicas; ++i) {
      positions.push_back(((steps_ - 1) * replicas + i) * source_->numbering.total + pipeline);
    }
  }
  return positions;
}

PerReplicaSpec DistributedIterator::element_spec() const {
  return {source_->component_spec(), source_->num_replicas()};
}

namespace {

std::string child_name(size_t worker) { return str("worker_", worker); }

// The positions of several workers' iterators, by their numbers in the sync group.
class DistributedInput final : public train::Trackable {
 public:
  DistributedInput(const std::vector<data::DatasetIterator>& iterators, size_t first)
      : iterators_(iterators.begin(), iterators.end()), first_(first) {}

  std::vector<train::TrackableChild> checkpoint_children() override {
    std::vector<train::TrackableChild> children;
    for (size_t i = 0; i < iterators_.size(); ++i) {
      children.push_back({child_name(first_ + i), iterators_[i].get().get()});
    }
    return children;
  }

 private:
  std::vector<train::TrackableHandle> iterators_;
  size_t first_;
};

}  // namespace

data::IteratorState DistributedIterator::state() const {
  if (iterators_.size() == 1) return iterators_.front().state();
  data::IteratorState state;
  state.set_int("workers", static_cast<int64_t>(iterators_.size()));
  for (size_t i = 0; i < iterators_.size(); ++i) {
    state.set_child(child_name(i), iterators_[i].state());
  }
  return state;
}

void DistributedIterator::restore(const data::IteratorState& state) {
  const int64_t workers = state.has("workers") ? state.get_int("workers") : 1;
  if (workers != static_cast<int64_t>(iterators_.size())) {
    throw InvalidArgumentError(
        str("this state is of ", workers, " input workers; here are ", iterators_.size()));
  }
  std::vector<std::unique_ptr<internal::DataIterator>> restored;
  for (size_t i = 0; i < iterators_.size(); ++i) {
    const data::IteratorState& own = iterators_.size() == 1 ? state : state.child(child_name(i));
    restored.push_back(iterators_[i].reader()->iterator_at(own));
  }
  for (size_t i = 0; i < iterators_.size(); ++i) {
    iterators_[i].reader()->replace_iterator(std::move(restored[i]));
  }
  steps_ = 0;
}

std::shared_ptr<train::Trackable> DistributedIterator::trackable() const {
  if (iterators_.size() == 1) return train::TrackableHandle(iterators_.front()).get();
  return std::make_shared<DistributedInput>(iterators_,
                                            static_cast<size_t>(source_->numbering.first));
}

BatchSequence DistributedIterator::begin() { return BatchSequence(this); }

namespace internal_input {

BatchSequence::BatchSequence(DistributedIterator iterator)
    : owned_(std::make_shared<DistributedIterator>(std::move(iterator))),
      iterator_(owned_.get()),
      batch_(iterator_->next()) {}
BatchSequence::BatchSequence(DistributedIterator* iterator)
    : iterator_(iterator), batch_(iterator->next()) {}
BatchSequence& BatchSequence::operator++() {
  batch_ = iterator_->next();
  return *this;
}

}  // namespace internal_input

}  // namespace cohort::distribute
