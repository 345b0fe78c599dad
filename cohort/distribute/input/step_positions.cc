// The positions of readers: in states, and in checkpoints.
#include <utility>

#include "cohort/core/text.h"
#include "cohort/distribute/core/strategy_core.h"
#include "cohort/distribute/input/step_reader.h"
#include "cohort/train/objects/save_group.h"

namespace cohort::distribute::internal_input {

using data::IteratorState;
using internal::str;

namespace {

constexpr const char* kWorkers = "workers";  // pipelines with positions of their own
constexpr const char* kPieces = "pieces";    // of each of their batches
constexpr const char* kPolicy = "policy";    // by which a dataset was divided into them
// The position in what so many of them have left, which all read together.
constexpr const char* kRestOf = "rest_of";
constexpr const char* kPosition = "position";

std::string child_of(size_t pipeline) { return str("worker_", pipeline); }

constexpr const char* kAnew =
    "begin the data anew: leave the input out of the Checkpoint that restores";

// Errors: DataLoss.
data::AutoShardPolicy policy_in(const IteratorState& state) {
  const std::string& name = state.get_bytes(kPolicy);
  for (const auto policy :
       {data::AutoShardPolicy::OFF, data::AutoShardPolicy::FILE, data::AutoShardPolicy::HINT}) {
    if (str(policy) == name) return policy;
  }
  throw DataLossError(str("a position of input is of AutoShardPolicy ", internal::quoted(name)));
}

// The most that a position may speak of: a damaged one must not take all memory.
constexpr int64_t kMostPipelines = 100000;

}  // namespace

StepReader::Rest StepReader::rest_in(const IteratorState& state) {
  return {.policy = policy_in(state), .pipelines = state.get_int(kRestOf, 1, kMostPipelines)};
}

// The number in the sync group of this task's first pipeline.
int StepReader::first_pipeline() const {
  return source_->feed == Feed::kOwnPipeline ? range_.first : source_->numbering.first;
}

IteratorState StepReader::state_of(size_t pipeline) const {
  if (batch_) return batch_->before.known()[pipeline];
  if (before_begun_) return before_begun_->known()[pipeline];
  return iterators_[pipeline].state();
}

// The position of all pipelines together.
IteratorState StepReader::whole_state() const {
  IteratorState whole = whole_position(*shared_, source_->numbering.first, state_of(0));
  if (!rest_ || rest_->pipelines == 0) return whole;
  IteratorState state;
  state.set_int(kRestOf, rest_->pipelines);
  state.set_bytes(kPolicy, str(rest_->policy));
  state.set_child(kPosition, std::move(whole));
  return state;
}

IteratorState StepReader::state() const {
  home_.check(kIteratorName);
  const internal::ExclusiveUse::Hold hold(use_, kIteratorName);
  if (shared_) return whole_state();
  if (iterators_.size() == 1) return state_of(0);
  IteratorState state;
  state.set_int(kWorkers, static_cast<int64_t>(iterators_.size()));
  for (size_t i = 0; i < iterators_.size(); ++i) state.set_child(child_of(i), state_of(i));
  return state;
}

// For a position of the source's own pipelines.
StepReader::Place StepReader::own_place() const {
  Place place{
      .others = {}, .shared = source_->shared, .rest = {}, .iterators = {}, .pipelines = {}};
  if (!rest_) return place;
  for (size_t i = 0; i < iterators_.size(); ++i) place.others.push_back(make_iterator(i));
  return place;
}

const internal::DatasetReader& StepReader::reader_of(const Place& place,
                                                     const std::vector<data::DatasetIterator>& here,
                                                     size_t pipeline) {
  return *(place.others.empty() ? here : place.others)[pipeline].reader();
}

void StepReader::place_whole(Place& place, const IteratorState& whole) const {
  for (size_t i = 0; i < iterators_.size(); ++i) {
    const internal::DatasetReader& reader = reader_of(place, iterators_, i);
    const int64_t number = source_->numbering.first + static_cast<int64_t>(i);
    place.iterators.push_back(
        reader.place_at(own_position(*place.shared, number, reader.graph(), whole)));
  }
}

StepReader::Place StepReader::place_at_whole(const IteratorState& whole) const {
  Place place = own_place();
  place_whole(place, whole);
  return place;
}

StepReader::Place StepReader::place_at(const IteratorState& state) const {
  if (state.has(kRestOf) && source_->batches)
    return rest_at(rest_in(state), state.child(kPosition));
  const bool of_one = !state.has(kWorkers);
  const int64_t workers = of_one ? 1 : state.get_int(kWorkers);
  if (of_one && source_->shared) return place_at_whole(state);
  if (workers != static_cast<int64_t>(iterators_.size()) || source_->shared) {
    throw InvalidArgumentError(str("this state is of ", workers, " input workers; here ",
                                   iterators_.size() == 1 ? "is " : "are ", iterators_.size()));
  }
  Place place = own_place();
  if (source_->feed == Feed::kOwnPipeline) place.pipelines.resize(source_->pipelines.size());
  for (size_t i = 0; i < iterators_.size(); ++i) {
    const IteratorState& own = of_one ? state : state.child(child_of(i));
    place.iterators.push_back(reader_of(place, iterators_, i).place_at(own));
    if (place.pipelines.empty()) continue;
    place.pipelines[static_cast<size_t>(range_.first) + i] = own;
  }
  return place;
}

void StepReader::restore(const IteratorState& state) { go_to(place_at(state)); }

void StepReader::go_to(Place place) {
  home_.check(kIteratorName);
  const internal::ExclusiveUse::Hold hold(use_, kIteratorName);
  if (!place.others.empty()) iterators_ = std::move(place.others);
  shared_ = std::move(place.shared);
  rest_ = place.rest;
  for (size_t i = 0; i < place.iterators.size(); ++i) {
    if (place.iterators[i].pass) epoch_ = *place.iterators[i].pass;
    iterators_[i].reader()->go_to(std::move(place.iterators[i]));
  }
  pipelines_ = std::move(place.pipelines);
  batch_ = last_batch_ = following_ = std::nullopt;
  before_begun_ = before_last_ = std::nullopt;
  last_pieces_.clear();
  restarted_ = at_end_ = false;
  begun_ = {};
  coming_ = {};
  pass_ = internal::InputPlace::kRestored;
  steps_ = 0;
}

// The position of pipelines that share their batches is that of the undivided dataset's iterator,
// the same in all tasks, with or without a strategy. Others have positions of their own: each task
// brings those of its pipelines, by their numbers in the sync group, as values of this object.
class StepReader::Position final : public train::Trackable {
 public:
  explicit Position(std::shared_ptr<StepReader> reader) : reader_(std::move(reader)) {}

  std::shared_ptr<train::SaveGroup> save_group() const override {
    return source().core->save_group();
  }

  bool has_checkpoint_values() const override { return true; }

  std::vector<train::CheckpointValue> checkpoint_values() override {
    reader_->home_.check(kIteratorName);
    const internal::ExclusiveUse::Hold hold(reader_->use_, kIteratorName);
    if (reader_->shared_) return {value_of(train::kIteratorState, reader_->whole_state())};
    IteratorState state;
    state.set_int(kWorkers, num_pipelines());
    if (source().policy && source().batches) {
      state.set_bytes(kPolicy, str(*source().policy));
      state.set_int(kPieces, source().core->num_replicas_in_sync());
    }
    std::vector<train::CheckpointValue> values = {value_of(train::kIteratorState, state)};
    for (size_t i = 0; i < reader_->iterators_.size(); ++i) {
      values.push_back(value_of(attribute_of(reader_->first_pipeline() + static_cast<int64_t>(i)),
                                reader_->state_of(i)));
    }
    return values;
  }

  void prepare_restore(train::RestoreSource& source) override {
    const IteratorState state = read_state(source, train::kIteratorState);
    check_form(source, state);
    const bool apart = state.has(kWorkers);
    if (!apart && this->source().shared) return commit_at(source, reader_->place_at(state));
    const int64_t saved = apart ? state.get_int(kWorkers, 1, kMostPipelines) : 1;
    if (may_inherit(state)) return commit_at(source, inherited(source, state, saved));
    check_pipelines(saved, apart);
    Place place = reader_->own_place();
    const bool all = this->source().feed == Feed::kOwnPipeline;
    for (int64_t i = 0; all && i < saved; ++i) {
      place.pipelines.emplace_back(read_state(source, attribute_of(i)));
    }
    for (size_t i = 0; i < reader_->iterators_.size(); ++i) {
      const int64_t number = reader_->first_pipeline() + static_cast<int64_t>(i);
      place.iterators.push_back(reader_of(place, reader_->iterators_, i)
                                    .place_at(read_state(source, attribute_of(number))));
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

  // Whether all read together what others, who divided the dataset otherwise, have left.
  bool may_inherit(const IteratorState& state) const {
    if (!source().batches) return false;
    if (!state.has(kWorkers)) return true;
    if (!state.has(kPolicy)) return false;
    return source().shared || state.get_int(kWorkers) != num_pipelines() ||
           state.get_int(kPieces) != source().core->num_replicas_in_sync();
  }
  Place inherited(train::RestoreSource& source, const IteratorState& state, int64_t saved) const {
    if (state.has(kRestOf)) return reader_->place_at(state);
    if (!state.has(kWorkers)) return reader_->rest_at({}, state);
    std::vector<IteratorState> pipelines;
    for (int64_t i = 0; i < saved; ++i) pipelines.push_back(read_state(source, attribute_of(i)));
    return reader_->rest_of_all({.policy = policy_in(state), .pipelines = saved}, pipelines,
                                state.get_int(kPieces, 1, kMostPipelines));
  }

  // Errors: InvalidArgument (several workers' or tasks' positions, as they were before they were
  // values of one object).
  static void check_form(train::RestoreSource& source, const IteratorState& state) {
    const bool of_now = state.has(kWorkers)
                            ? source.shape(attribute_of(0)).has_value()
                            : !state.has("tasks") && !state.has("came") && !state.has("read");
    if (of_now) return;
    throw InvalidArgumentError(
        str("this checkpoint has the input positions of several workers as an earlier version of "
            "Cohort saved them; ",
            kAnew));
  }
  // Errors: InvalidArgument (of others than this reader's).
  void check_pipelines(int64_t saved, bool apart) const {
    if (!source().shared && apart && saved == num_pipelines()) return;
    const auto text_of = [](int64_t pipelines, bool each) {
      return each ? str(pipelines, " pipelines") : std::string("one undivided dataset");
    };
    throw InvalidArgumentError(
        str("this checkpoint has the input position of ", text_of(saved, apart), "; here ",
            "it is read by ", text_of(num_pipelines(), !source().shared), ", ", source().division,
            ". What each has read is known for the same pipelines alone: let as many workers read, "
            "or ",
            kAnew));
  }
  void commit_at(train::RestoreSource& source, Place place) {
    const auto shared = std::make_shared<Place>(std::move(place));
    source.on_commit([this, shared] { reader_->go_to(std::move(*shared)); });
  }
  const Source& source() const { return *reader_->source_; }
  int64_t num_pipelines() const {
    return source().feed == Feed::kOwnPipeline ? std::ssize(source().pipelines)
                                               : source().numbering.total;
  }

  std::shared_ptr<StepReader> reader_;
};

std::shared_ptr<train::Trackable> StepReader::trackable(std::shared_ptr<StepReader> reader) {
  return std::make_shared<Position>(std::move(reader));
}

}  // namespace cohort::distribute::internal_input
