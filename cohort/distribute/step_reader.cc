#include "cohort/distribute/step_reader.h"

#include <algorithm>

#include "cohort/data/iteration/dataset_reader.h"
#include "cohort/data/iteration/input_deadline.h"
#include "cohort/data/storage/pending_elements.h"
#include "cohort/distribute/dummy_batch.h"

namespace cohort::distribute::internal_input {

using data::IteratorState;
using internal::str;

namespace {

constexpr const char* kBegun = "begun";

std::string child_name(size_t worker) { return str("worker_", worker); }

}  // namespace

StepReader::StepReader(std::shared_ptr<const Source> source) : source_(std::move(source)) {
  const uint64_t pass = source_->passes.fetch_add(1);
  for (size_t worker = 0; worker < source_->pipelines.size(); ++worker) {
    const data::Dataset& pipeline = source_->pipelines[worker];
    iterators_.emplace_back(pipeline.node(),
                            internal::IteratorContext{
                                .epoch = pass,
                                .worker = static_cast<uint64_t>(source_->numbering.first) + worker,
                                .deterministic = pipeline.options().is_deterministic()});
  }
}

std::optional<StepReader::Step> StepReader::next() {
  read_rest();
  if (begun_.error) {
    ++steps_;
    std::rethrow_exception(std::exchange(begun_, {}).error);
  }
  const auto present = [](const auto& element) { return element.has_value(); };
  const bool any = std::any_of(begun_.elements.begin(), begun_.elements.end(), present);
  const bool all = std::all_of(begun_.elements.begin(), begun_.elements.end(), present);
  bool goes_on = false;
  try {
    goes_on = source_->core->any_process_has_data(any) && (all || source_->fills_up_last_step());
    if (goes_on && !all) fill_up();
  } catch (const internal::InputDeadlineExceeded&) {  // what elements look like may be read, too
    throw;
  } catch (...) {
    begun_ = {};
    ++steps_;
    throw;
  }
  Begun whole = std::exchange(begun_, {});
  if (!goes_on) return std::nullopt;
  ++steps_;
  Step step;
  for (std::optional<Structure>& element : whole.elements) step.push_back(*std::move(element));
  return step;
}

// Where what elements look like cannot be found out, as those of this step look.
void StepReader::fill_up() {
  Structure dummy;
  try {
    dummy = internal::dummy_batch(source_->component_spec());
  } catch (const internal::InputDeadlineExceeded&) {
    throw;
  } catch (const std::exception&) {
    const auto present = std::find_if(begun_.elements.begin(), begun_.elements.end(),
                                      [](const auto& element) { return element.has_value(); });
    if (present == begun_.elements.end()) throw;
    dummy = internal::dummy_batch(StructureSpec::of(**present));
  }
  for (std::optional<Structure>& element : begun_.elements) {
    if (!element) element = dummy;
  }
}

void StepReader::read_rest() {
  size_t place = 0;
  for (size_t worker = 0; worker < iterators_.size(); ++worker) {
    for (size_t replica = 0; replica < source_->num_replicas(worker); ++replica) {
      if (place++ < begun_.elements.size()) continue;
      std::optional<Structure> element;
      try {
        element = iterators_[worker].next();
      } catch (const internal::InputDeadlineExceeded&) {
        throw;
      } catch (...) {
        if (!begun_.error) begun_.error = std::current_exception();
      }
      begun_.elements.push_back(std::move(element));
    }
  }
}

// Which elements came, and those; or, where one has failed, its error: the others will be dropped.
IteratorState StepReader::save_begun() const {
  IteratorState state;
  if (begun_.error) {
    state.set_int("read", static_cast<int64_t>(begun_.elements.size()));
    internal::save_error(begun_.error, state);
    return state;
  }
  std::string came;
  std::vector<Structure> elements;
  for (const std::optional<Structure>& element : begun_.elements) {
    came += element ? '1' : '0';
    if (element) elements.push_back(*element);
  }
  state.set_bytes("came", std::move(came));
  internal::save_pending(elements, state);
  return state;
}

StepReader::Begun StepReader::read_begun(const IteratorState& state) const {
  // A whole step may stand here, whose dummies are still to be made.
  const auto replicas = static_cast<int64_t>(source_->num_replicas());
  const bool failed = !state.has("came");
  const int64_t read = failed ? state.get_int("read", 0, std::numeric_limits<int64_t>::max())
                              : static_cast<int64_t>(state.get_bytes("came").size());
  if (read > replicas) {
    throw InvalidArgumentError(str("this state was taken in the middle of a step of at least ",
                                   read, " replicas; here are ", replicas));
  }
  Begun begun;
  begun.elements.resize(static_cast<size_t>(read));
  if (failed) {
    begun.error = internal::restore_error(state);
    return begun;
  }
  std::vector<Structure> elements =
      internal::restore_pending(state, "distributed iterator", replicas + 1);
  const std::string& came = state.get_bytes("came");
  if (static_cast<size_t>(std::count(came.begin(), came.end(), '1')) != elements.size()) {
    throw DataLossError(str("iterator state of a distributed iterator: ", elements.size(),
                            " elements came of '", came, "'"));
  }
  auto element = elements.begin();
  for (size_t i = 0; i < came.size(); ++i) {
    if (came[i] == '1') begun.elements[i] = std::move(*element++);
  }
  return begun;
}

IteratorState StepReader::state() const {
  if (iterators_.size() == 1 && begun_.elements.empty()) return iterators_.front().state();
  IteratorState state;
  state.set_int("workers", static_cast<int64_t>(iterators_.size()));
  for (size_t i = 0; i < iterators_.size(); ++i) {
    state.set_child(child_name(i), iterators_[i].state());
  }
  if (!begun_.elements.empty()) state.set_child(kBegun, save_begun());
  return state;
}

StepReader::Place StepReader::place_at(const IteratorState& state) const {
  const bool of_one = !state.has("workers");
  const int64_t workers = of_one ? 1 : state.get_int("workers");
  if (workers != static_cast<int64_t>(iterators_.size())) {
    throw InvalidArgumentError(
        str("this state is of ", workers, " input workers; here are ", iterators_.size()));
  }
  Place place;
  for (size_t i = 0; i < iterators_.size(); ++i) {
    const IteratorState& own = of_one ? state : state.child(child_name(i));
    place.iterators.push_back(iterators_[i].reader()->iterator_at(own));
  }
  if (!of_one && state.has(kBegun)) place.begun = read_begun(state.child(kBegun));
  return place;
}

void StepReader::go_to(Place place) {
  for (size_t i = 0; i < place.iterators.size(); ++i) {
    iterators_[i].reader()->replace_iterator(std::move(place.iterators[i]));
  }
  begun_ = std::move(place.begun);
  steps_ = 0;
}

void StepReader::restore(const IteratorState& state) { go_to(place_at(state)); }

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
      children.push_back({child_name(first + i), workers_[i].get().get()});
    }
    return children;
  }

  bool has_checkpoint_values() const override { return true; }

  std::vector<train::CheckpointValue> checkpoint_values() override {
    IteratorState state = workers_.empty() ? reader_->state() : reader_->save_begun();
    if (!workers_.empty()) state.set_int("workers", static_cast<int64_t>(workers_.size()));
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
  // Errors: InvalidArgument (of another number of workers: its children are not this one's).
  void check_workers(const IteratorState& state) const {
    const size_t here = reader_->iterators_.size();
    if (state.has("workers") || state.has("graph")) {  // with a graph: one worker's own position
      const int64_t saved = state.has("workers") ? state.get_int("workers") : 1;
      if (saved == static_cast<int64_t>(here)) return;
      throw InvalidArgumentError(
          str("this checkpoint is of ", saved, " input workers; here are ", here));
    }
    // What several workers saved before they said how many they are.
    if (here > 1 || !(state.has("came") || state.has("read"))) return;
    throw InvalidArgumentError(str("this checkpoint is of several input workers; here are ", here));
  }

  std::shared_ptr<StepReader> reader_;
  std::vector<train::TrackableHandle> workers_;
};

std::shared_ptr<train::Trackable> StepReader::trackable(std::shared_ptr<StepReader> reader) {
  return std::make_shared<Position>(std::move(reader));
}

}  // namespace cohort::distribute::internal_input
