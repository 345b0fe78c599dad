// The positions of readers in checkpoints.
#include <utility>

#include "cohort/distribute/core/strategy_core.h"
#include "cohort/distribute/input/step_reader.h"
#include "cohort/train/objects/save_group.h"

namespace cohort::distribute::internal_input {

using data::IteratorState;
using internal::str;

namespace {

// The key of the number of tasks, in what several tasks save together.
constexpr const char* kTasks = "tasks";

[[noreturn]] void throw_other_tasks(int64_t saved, int64_t here) {
  throw InvalidArgumentError(
      str("this checkpoint has the input positions of ", saved, " tasks; here ",
          here == 1 ? "is " : "are ", here,
          ". Begin the data anew: leave the input out of the Checkpoint that restores"));
}

}  // namespace

// One worker's position is that of its dataset's iterator, with or without a strategy. Several
// workers' are children, by their numbers in the sync group, beside how many there are and what was
// read of a step.
class StepReader::Position final : public train::Trackable {
 public:
  explicit Position(std::shared_ptr<StepReader> reader) : reader_(std::move(reader)) {
    if (reader_->iterators_.size() == 1) return;
    for (const data::DatasetIterator& iterator : reader_->iterators_)
      workers_.emplace_back(iterator);
  }

  std::vector<train::TrackableChild> checkpoint_children() override {
    const auto first = static_cast<size_t>(reader_->source_->numbering.first);
    std::vector<train::TrackableChild> children;
    for (size_t i = 0; i < workers_.size(); ++i) {
      children.push_back({pipeline_name(first + i), workers_[i].get().get()});
    }
    return children;
  }

  std::shared_ptr<train::SaveGroup> save_group() const override {
    return reader_->source_->core->save_group();
  }

  bool has_checkpoint_values() const override { return true; }

  std::vector<train::CheckpointValue> checkpoint_values() override {
    IteratorState state = workers_.empty() ? reader_->state() : shared_state();
    return {{.attribute = train::kIteratorState,
             .parts = {{Leaf(StringTensor::scalar(state.serialize()))}}}};
  }

  void prepare_restore(train::RestoreSource& source) override {
    const StringTensor bytes = source.read_strings(train::kIteratorState);
    const IteratorState state = IteratorState::parse(bytes.item());
    check_workers(state);
    const auto place = std::make_shared<Place>();
    if (workers_.empty()) {
      *place = reader_->place_at(state);
    } else {
      place->begun = reader_->read_begun(state);
    }
    source.on_commit([this, place] { reader_->go_to(std::move(*place)); });
  }

 private:
  // The state that belongs to no single worker.
  IteratorState shared_state() const {
    reader_->home_.check(kIteratorName);
    const internal::ExclusiveUse::Hold hold(reader_->use_, kIteratorName);
    IteratorState state = reader_->save_begun();
    state.set_int("workers", static_cast<int64_t>(workers_.size()));
    return state;
  }

  // Errors: InvalidArgument (of another number of workers, or of tasks: its children are not this
  // one's).
  void check_workers(const IteratorState& state) const {
    const size_t here = reader_->iterators_.size();
    if (state.has(kTasks)) throw_other_tasks(state.get_int(kTasks), 1);
    if (state.has("workers") || state.has("graph")) {  // with a graph: one worker's own position
      const int64_t saved = state.has("workers") ? state.get_int("workers") : 1;
      if (saved == static_cast<int64_t>(here)) return;
      throw InvalidArgumentError(
          str("this checkpoint is of ", saved, " input workers; here are ", here));
    }
    // A state of several workers, which was saved before such states said how many workers there
    // are.
    if (here > 1 || !(state.has("came") || state.has("read"))) return;
    throw InvalidArgumentError(str("this checkpoint is of several input workers; here are ", here));
  }

  std::shared_ptr<StepReader> reader_;
  std::vector<train::TrackableHandle> workers_;
};

// The positions of tasks that share input: each has one of its own, a child by the task's number.
class StepReader::PositionOfTask final : public train::Trackable {
 public:
  explicit PositionOfTask(std::shared_ptr<StepReader> reader)
      : core_(reader->source_->core), position_(std::move(reader)) {}

  std::vector<train::TrackableChild> checkpoint_children() override {
    return {{str("task_", core_->group().view()->task), &position_}};
  }

  std::shared_ptr<train::SaveGroup> save_group() const override { return core_->save_group(); }

  bool has_checkpoint_values() const override { return true; }

  std::vector<train::CheckpointValue> checkpoint_values() override {
    IteratorState state;
    state.set_int(kTasks, core_->group().view()->num_tasks());
    return {{.attribute = train::kIteratorState,
             .parts = {{Leaf(StringTensor::scalar(state.serialize()))}}}};
  }

  void prepare_restore(train::RestoreSource& source) override {
    const StringTensor bytes = source.read_strings(train::kIteratorState);
    const IteratorState state = IteratorState::parse(bytes.item());
    const int64_t saved = state.has(kTasks) ? state.get_int(kTasks) : 1;
    const int64_t here = core_->group().view()->num_tasks();
    if (saved != here) throw_other_tasks(saved, here);
  }

 private:
  std::shared_ptr<internal::StrategyCore> core_;
  Position position_;
};

// The position of replicas, whichever tasks they are on. All tasks that read batches and take
// pieces of them are at the same place, which is that of a single worker. A dataset function's
// pipelines have values of their own, by the numbers of their replicas.
class StepReader::PositionOfReplicas final : public train::Trackable {
 public:
  explicit PositionOfReplicas(std::shared_ptr<StepReader> reader) : reader_(std::move(reader)) {}

  std::shared_ptr<train::SaveGroup> save_group() const override {
    return reader_->source_->core->save_group();
  }

  bool has_checkpoint_values() const override { return true; }

  std::vector<train::CheckpointValue> checkpoint_values() override {
    if (reads_pieces()) return {value_of(train::kIteratorState, reader_->state())};
    IteratorState state;
    state.set_int("workers", num_pipelines());
    std::vector<train::CheckpointValue> values = {value_of(train::kIteratorState, state)};
    for (size_t i = 0; i < reader_->iterators_.size(); ++i) {
      values.push_back(value_of(attribute_of(reader_->range_.first + static_cast<int64_t>(i)),
                                reader_->state_of(i)));
    }
    return values;
  }

  void prepare_restore(train::RestoreSource& source) override {
    const IteratorState state = read_state(source, train::kIteratorState);
    if (state.has(kTasks)) throw_other_tasks(state.get_int(kTasks), 1);
    if (reads_pieces()) return commit_at(source, reader_->place_at(state));
    const int64_t saved = state.has("workers") ? state.get_int("workers") : 1;
    if (saved != num_pipelines()) {
      throw InvalidArgumentError(str("this checkpoint has the input positions of ", saved,
                                     " pipelines of a dataset function; here are ",
                                     num_pipelines()));
    }
    Place place;
    for (int64_t i = 0; i < saved; ++i) {
      place.pipelines.emplace_back(read_state(source, attribute_of(i)));
    }
    for (size_t i = 0; i < reader_->iterators_.size(); ++i) {
      const auto number = static_cast<size_t>(reader_->range_.first) + i;
      place.iterators.push_back(
          reader_->iterators_[i].reader()->place_at(*place.pipelines[number]));
    }
    commit_at(source, std::move(place));
  }

 private:
  static std::string attribute_of(int64_t pipeline) {
    return str(train::kIteratorState, "_", pipeline);
  }
  static train::CheckpointValue value_of(std::string attribute, const IteratorState& state) {
    return {.attribute = std::move(attribute),
            .parts = {{Leaf(StringTensor::scalar(state.serialize()))}}};
  }
  static IteratorState read_state(train::RestoreSource& source, const std::string& attribute) {
    return IteratorState::parse(source.read_strings(attribute).item());
  }
  void commit_at(train::RestoreSource& source, Place place) {
    const auto shared = std::make_shared<Place>(std::move(place));
    source.on_commit([this, shared] { reader_->go_to(std::move(*shared)); });
  }
  bool reads_pieces() const { return reader_->source_->feed == Feed::kPieces; }
  int64_t num_pipelines() const { return std::ssize(reader_->source_->pipelines); }

  std::shared_ptr<StepReader> reader_;
};

std::shared_ptr<train::Trackable> StepReader::trackable(std::shared_ptr<StepReader> reader) {
  if (reader->is_hosted()) return std::make_shared<PositionOfReplicas>(std::move(reader));
  if (reader->source_->core->group().spans_tasks()) {
    return std::make_shared<PositionOfTask>(std::move(reader));
  }
  return std::make_shared<Position>(std::move(reader));
}

}  // namespace cohort::distribute::internal_input
