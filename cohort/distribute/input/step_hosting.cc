// Reading for replicas that tasks host: a task may go on for others of them between two steps, and
// read the step that was returned last again.
#include <algorithm>
#include <utility>

#include "cohort/core/caught_error.h"
#include "cohort/data/iteration/input_deadline.h"
#include "cohort/data/sharding/split_batches.h"
#include "cohort/distribute/core/strategy_core.h"
#include "cohort/distribute/input/step_reader.h"

namespace cohort::distribute::internal_input {

using data::DatasetIterator;
using data::IteratorState;
using internal::str;

const std::vector<IteratorState>& StepReader::Mark::known() const {
  if (error) std::rethrow_exception(error);
  return states;
}

// A pipeline whose state cannot be saved can be read all the same.
StepReader::Mark StepReader::mark() const {
  Mark mark{.step = steps_, .first = range_.first};
  try {
    for (const DatasetIterator& iterator : iterators_) mark.states.push_back(iterator.state());
  } catch (const std::exception&) {
    mark.error = std::current_exception();
  }
  return mark;
}

void StepReader::read_pieces() {
  if (!begun_.elements.empty()) return;
  if (!batch_) batch_ = read_batch();
  cut(*batch_);
}

// Errors: InputDeadlineExceeded, which consumes nothing; others are the batch's own.
StepReader::Batch StepReader::read_batch() {
  Batch batch{.before = mark()};
  try {
    batch.rows = iterators_[0].next();
  } catch (const internal::InputDeadlineExceeded&) {
    throw;
  } catch (...) {
    batch.error = internal::caught_error();
  }
  return batch;
}

// Fills begun_ with the pieces of this task's replicas. A batch that fails, or that cannot be cut,
// fails for all of them.
void StepReader::cut(const Batch& batch) {
  begun_.elements.resize(static_cast<size_t>(range_.size()));
  begun_.error = batch.error;
  if (!batch.rows) return;
  try {
    std::vector<Structure> pieces = internal::split_batch(
        *batch.rows, source_->core->num_replicas_in_sync(), {range_.first, range_.size()});
    std::move(pieces.begin(), pieces.end(), begun_.elements.begin());
  } catch (const std::exception&) {
    begun_.error = std::current_exception();
  }
}

// Keeps what restart_last needs.
void StepReader::step_returned(const Step& step, std::optional<Mark> before) {
  restarted_ = false;
  before_last_ = std::move(before);
  if (source_->feed != Feed::kPieces) return;
  last_batch_ = std::exchange(batch_, std::exchange(following_, std::nullopt));
  last_pieces_ = step;
}

// Takes down where the step to come begins, if it may be that it was read and not returned when
// somebody asks for the position.
void StepReader::mark_begun() {
  const bool one_read = iterators_.size() == 1 && (source_->num_replicas() == 1 || is_split());
  const bool returned_at_once = one_read && !looks_ahead_ && !source_->core->input_is_shared();
  if (is_hosted() || !returned_at_once) before_begun_ = mark();
}

// Whether the elements that the replicas take in a step are pieces of one batch.
bool StepReader::is_split() const { return shared_ && shared_->pieces > 1; }

// There was no step to return. Pipelines that have ended no longer say where they were before.
void StepReader::end_here() {
  const auto present = [](const auto& element) { return element.has_value(); };
  at_end_ = std::none_of(begun_.elements.begin(), begun_.elements.end(), present);
  begun_ = {};
  if (source_->feed == Feed::kPieces) batch_ = std::exchange(following_, std::nullopt);
  if (!at_end_) before_begun_.reset();
}

// The step to come is over without being returned.
void StepReader::drop_begun() {
  begun_ = {};
  batch_ = std::exchange(following_, std::nullopt);
  before_begun_.reset();
}

void StepReader::check_hosted() const {
  home_.check(kIteratorName);
  if (is_hosted()) return;
  throw FailedPreconditionError(
      "only a reader of replicas that tasks host, of batches that are divided by their numbers or "
      "of "
      "a pipeline for each, can go on for others of them");
}

void StepReader::host(collective::ReplicaRange range) {
  check_hosted();
  const internal::ExclusiveUse::Hold hold(use_, kIteratorName);
  host_here(range);
}

// Whether the group has formed again. The replicas that are here then are those of this reader.
bool StepReader::follow_group() {
  if (!is_hosted()) return false;
  const auto view = source_->core->group().view();
  if (std::exchange(generation_, view->generation) == view->generation) return false;
  host_here({view->first_replica(), view->first_replica() + view->num_local_replicas()});
  return true;
}

void StepReader::host_here(collective::ReplicaRange range) {
  coming_.reset();
  if (range == range_) return;
  if (source_->feed == Feed::kOwnPipeline) {
    iterators_ = pipelines_at(range, steps_);
    before_begun_.reset();
    at_end_ = false;
  }
  range_ = range;
  begun_ = {};
}

void StepReader::restart_last() {
  check_hosted();
  const internal::ExclusiveUse::Hold hold(use_, kIteratorName);
  coming_.reset();
  if (restarted_) return;
  if (!before_last_ && !last_batch_) {
    throw FailedPreconditionError(
        "no step was returned since this iterator was made or restored, so none can be read again");
  }
  if (source_->feed == Feed::kOwnPipeline) {
    iterators_ = pipelines_at(range_, steps_ - 1);
    before_begun_.reset();
    at_end_ = false;
  } else if (are_untouched(last_pieces_)) {
    following_ = std::exchange(batch_, std::exchange(last_batch_, std::nullopt));
  } else {
    internal::DatasetReader& reader = *iterators_[0].reader();
    internal::DatasetReader::Place place = reader.place_at(last_batch_->before.known()[0]);
    place.pass.reset();
    reader.go_to(std::move(place));
    batch_ = last_batch_ = following_ = std::nullopt;
  }
  last_pieces_.clear();
  begun_ = {};
  --steps_;
  restarted_ = true;
}

// The pieces of a batch.
class StepReader::SourceOfPieces final : public internal::ReplicaSource {
 public:
  SourceOfPieces(int first, Structure rows, Step pieces, int replicas)
      : ReplicaSource(first),
        rows_(std::move(rows)),
        pieces_(std::move(pieces)),
        replicas_(replicas) {}
  Structure component(int replica) const override {
    if (!are_untouched(pieces_)) {
      throw FailedPreconditionError(
          "a batch was changed in place, and cannot be had again for replicas that have moved to "
          "other workers; let steps write into copies");
    }
    return internal::split_batch(rows_, replicas_, {replica, 1})[0];
  }

 private:
  const Structure rows_;
  const Step pieces_;
  const int replicas_;
};

// A step of the pipelines of replicas.
class StepReader::SourceOfPipelines final : public internal::ReplicaSource {
 public:
  explicit SourceOfPipelines(std::shared_ptr<StepReader> reader)
      : ReplicaSource(reader->range_.first),
        reader_(std::move(reader)),
        step_(reader_->steps_ - 1) {}
  Structure component(int replica) const override {
    DatasetIterator pipeline = reader_->pipeline_at(replica, step_);
    if (auto element = pipeline.next()) return *std::move(element);
    return reader_->make_dummy();
  }

 private:
  const std::shared_ptr<StepReader> reader_;
  const int64_t step_;
};

std::shared_ptr<const internal::ReplicaSource> StepReader::source_of_last(
    const std::shared_ptr<StepReader>& reader) {
  const internal::StrategyCore& core = *reader->source_->core;
  if (!reader->is_hosted() || core.transaction() == nullptr) return nullptr;
  if (reader->source_->feed == Feed::kOwnPipeline) {
    return std::make_shared<SourceOfPipelines>(reader);
  }
  return std::make_shared<SourceOfPieces>(reader->range_.first, *reader->last_batch_->rows,
                                          reader->last_pieces_, core.num_replicas_in_sync());
}

// Whether the pieces that the program got are as they were: they are views of the batch, in which
// it may have changed values in place.
bool StepReader::are_untouched(const Step& pieces) {
  bool untouched = true;
  for (const Structure& piece : pieces) {
    piece.for_each([&](const Leaf& leaf) {
      if (!leaf.is_tensor()) return;
      const Tensor& tensor = leaf.tensor();
      untouched = untouched && !tensor.is_inference() && tensor._version() == 0;
    });
  }
  return untouched;
}

std::vector<DatasetIterator> StepReader::pipelines_at(collective::ReplicaRange range,
                                                      int64_t step) const {
  std::vector<DatasetIterator> pipelines;
  for (int replica = range.first; replica < range.last; ++replica) {
    pipelines.push_back(pipeline_at(replica, step));
  }
  return pipelines;
}

// The pipeline of a replica before `step`, from the nearest place that this task knows.
DatasetIterator StepReader::pipeline_at(int replica, int64_t step) const {
  const auto number = static_cast<size_t>(replica);
  DatasetIterator pipeline = make_iterator(number);
  std::optional<IteratorState> known;
  int64_t from = 0;
  if (!pipelines_.empty()) {
    known = pipelines_[number];
  } else if (step > 0) {
    known = pipeline.state();
  }
  const auto consider = [&](const Mark& mark) {
    const int64_t place = replica - mark.first;
    if (mark.step > step || place < 0 || place >= std::ssize(mark.states) || mark.error) return;
    known = mark.states[static_cast<size_t>(place)];
    from = mark.step;
  };
  if (before_last_) consider(*before_last_);
  if (before_begun_) consider(*before_begun_);
  const bool is_here = replica >= range_.first && replica < range_.last && !iterators_.empty();
  if (is_here && !before_begun_ && step == steps_) {
    known = iterators_[static_cast<size_t>(replica - range_.first)].state();
    from = step;
  }
  if (!known && pipelines_.empty()) return pipeline;
  if (!known) {
    throw FailedPreconditionError(str(
        "the position of the pipeline of replica ", replica,
        " is not known to this task: its "
        "iterator was restored from a state of its own replicas; restore it from a checkpoint"));
  }
  internal::DatasetReader::Place place = pipeline.reader()->place_after(*known, step - from);
  place.pass.reset();  // whose number it has, and later passes have others
  pipeline.reader()->go_to(std::move(place));
  return pipeline;
}

}  // namespace cohort::distribute::internal_input
