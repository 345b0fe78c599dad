#include "cohort/distribute/input/distributed_iterator.h"

#include "cohort/core/profiler/phase.h"
#include "cohort/distribute/core/context_stack.h"
#include "cohort/distribute/core/replica.h"
#include "cohort/distribute/input/step_reader.h"

namespace cohort::distribute {

using internal::str;
using internal_input::BatchSequence;
using internal_input::ElementOrder;
using internal_input::Feed;
using internal_input::LastStep;
using internal_input::Source;
using internal_input::StepReader;

DistributedIterator::DistributedIterator(std::shared_ptr<const Source> source)
    : reader_(std::make_shared<StepReader>(std::move(source))) {}

void DistributedIterator::check_caller(const char* method) const {
  internal::require_cross_replica(method, "next outside of the step and pass the batch to run");
  const internal::StrategyCore& core = *reader_->source().core;
  if (!core.is_default()) internal::require_no_other_scope(core, "next of a distributed iterator");
}

bool DistributedIterator::has_next() {
  check_caller("DistributedIterator::has_next");
  const internal::ScopedPhase phase(profiler::Phase::kInput);
  return reader_->has_next();
}

std::optional<PerReplica<Structure>> DistributedIterator::next() {
  return read(LastStep::kAsShapesSay);
}

Optional<PerReplica<Structure>> DistributedIterator::get_next_as_optional() {
  return read(LastStep::kFilledUp);
}

std::optional<PerReplica<Structure>> DistributedIterator::read(LastStep last) {
  check_caller("DistributedIterator::next");
  const internal::ScopedPhase phase(profiler::Phase::kInput);
  std::optional<StepReader::Step> step = reader_->next(last);
  if (!step) return std::nullopt;

  internal_input::DeviceCopies* const copies = reader_->source().copies.get();
  PerReplica<Structure>::Values batch;
  for (size_t i = 0; i < step->size(); ++i) {
    batch.push_back(copies != nullptr ? copies->arrived((*step)[i], i) : std::move((*step)[i]));
  }
  return PerReplica<Structure>(std::move(batch), StepReader::source_of_last(reader_));
}

PerReplica<Structure> DistributedIterator::get_next() {
  if (auto batch = next()) return *std::move(batch);
  throw OutOfRangeError("DistributedIterator::get_next: the dataset is at its end");
}

std::vector<int64_t> DistributedIterator::positions() const {
  const Source& source = reader_->source();
  const size_t workers = source.pipelines.size();
  if (source.order == ElementOrder::kUnknown) {
    throw FailedPreconditionError(
        str("DistributedIterator::positions: the order of the elements of ", source.numbering.total,
            " input workers is not known (", source.division,
            "); let them share the dataset by AutoShardPolicy::DATA"));
  }
  const int64_t steps = reader_->steps();
  if (steps == 0) {
    throw FailedPreconditionError("DistributedIterator::positions: there was no batch yet");
  }
  std::vector<int64_t> positions;
  if (source.feed == Feed::kPieces) {
    const collective::ReplicaRange hosted = reader_->hosted();
    for (int replica = hosted.first; replica < hosted.last; ++replica) {
      positions.push_back((steps - 1) * source.core->num_replicas_in_sync() + replica);
    }
    return positions;
  }
  for (size_t worker = 0; worker < workers; ++worker) {
    const auto replicas = static_cast<int64_t>(source.num_replicas(worker));
    const int64_t pipeline = source.numbering.first + static_cast<int64_t>(worker);
    for (int64_t i = 0; i < replicas; ++i) {
      positions.push_back(((steps - 1) * replicas + i) * source.numbering.total + pipeline);
    }
  }
  return positions;
}

PerReplicaSpec DistributedIterator::element_spec() const {
  return {reader_->source().component_spec(), reader_->source().num_replicas()};
}

data::IteratorState DistributedIterator::state() const { return reader_->state(); }

void DistributedIterator::restore(const data::IteratorState& state) { reader_->restore(state); }

std::shared_ptr<train::Trackable> DistributedIterator::trackable() const {
  return StepReader::trackable(reader_);
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
