#include "cohort/distribute/input/step_reader.h"

#include <algorithm>

#include "cohort/core/caught_error.h"
#include "cohort/data/iteration/input_deadline.h"
#include "cohort/data/storage/pending_elements.h"
#include "cohort/distribute/core/strategy_core.h"
#include "cohort/distribute/input/dummy_batch.h"
#include "cohort/distribute/tasks/task_errors.h"

namespace cohort::distribute::internal_input {

using data::IteratorState;
using internal::InputStatus;
using internal::str;

namespace {

constexpr const char* kBegun = "begun";

}  // namespace

std::string StepReader::pipeline_name(size_t number) { return str("worker_", number); }

StepReader::StepReader(std::shared_ptr<const Source> source) : source_(std::move(source)) {
  const uint64_t pass = source_->passes.fetch_add(1);
  pass_ = static_cast<int64_t>(pass);
  epoch_ = pass;
  const auto view = source_->core->group().view();
  range_ = {view->first_replica(), view->first_replica() + view->num_local_replicas()};
  if (source_->feed == Feed::kOwnPipeline) {
    iterators_ = pipelines_at(range_, 0);
    return;
  }
  for (size_t i = 0; i < source_->pipelines.size(); ++i) iterators_.push_back(make_iterator(i));
}

data::DatasetIterator StepReader::make_iterator(size_t pipeline) const {
  const data::Dataset& dataset = source_->pipelines[pipeline];
  const auto first = static_cast<uint64_t>(source_->numbering.first);
  return {dataset.node(),
          internal::IteratorContext{
              .epoch = epoch_,
              .passes = {source_, &source_->passes},
              .worker = (source_->feed == Feed::kOwnPipeline ? 0 : first) + pipeline,
              .deterministic = dataset.options().is_deterministic()}};
}

std::optional<StepReader::Step> StepReader::next(LastStep last) {
  home_.check(kIteratorName);
  const internal::ExclusiveUse::Hold hold(use_, kIteratorName);
  // has_next() may have left out what is filled up here. Elements that were read stay so.
  const bool may_be_left_out = coming_ && !coming_->group && !coming_->here.has_data;
  if (last == LastStep::kFilledUp && may_be_left_out) coming_.reset();
  if (!coming_) look(last);
  Coming coming = *std::exchange(coming_, {});
  const InputStatus group = agreed(coming);
  throw_agreed(coming, group);
  if (!group.has_data) {
    drop_begun();
    return std::nullopt;
  }
  Begun whole = std::exchange(begun_, {});
  ++steps_;
  Step step;
  for (std::optional<Structure>& element : whole.elements) {
    step.push_back(element ? *std::move(element) : *coming.dummy);
  }
  if (is_hosted()) step_returned(step);
  if (coming.group) look(LastStep::kAsShapesSay);
  return step;
}

bool StepReader::has_next() {
  home_.check(kIteratorName);
  const internal::ExclusiveUse::Hold hold(use_, kIteratorName);
  if (!coming_) look(LastStep::kAsShapesSay);
  try {
    const InputStatus group = agreed(*coming_);
    return group.has_data || group.failed >= 0 || group.late >= 0;
  } catch (...) {
    return true;  // next() will throw it
  }
}

// The answer of the group, which it gives once: it is kept for the next question.
InputStatus StepReader::agreed(Coming& coming) {
  if (!coming.group) return coming.here;
  try {
    const InputStatus group = coming.group();
    coming.group = [group] { return group; };
    return group;
  } catch (...) {
    coming.group = [error = std::current_exception()]() -> InputStatus {
      std::rethrow_exception(error);
    };
    throw;
  }
}

// Reads the next step and tells the group what there is. A failure belongs to that step, and is
// kept for it.
void StepReader::look(LastStep last) {
  Coming coming;
  try {
    look_into(coming, last);
  } catch (const internal::InputDeadlineExceeded&) {
    coming.here.late = pipeline_of(begun_.elements.size());
    coming.error = std::current_exception();
  } catch (...) {
    coming.error = internal::caught_error();
    coming.here.failed = pipeline_of(begun_.failed);
  }
  if (source_->core->input_is_shared()) {
    try {
      coming.group = source_->core->agree_on_input(
          coming.here, {.dataset = source_->numbering.dataset, .pass = pass_, .step = steps_});
    } catch (...) {
      coming.group = [error = std::current_exception()]() -> InputStatus {
        std::rethrow_exception(error);
      };
    }
  }
  coming_ = std::move(coming);
}

// Fills up a step that lacks some batches with dummies if any process has batches for it. If there
// is a group, only the group knows that.
void StepReader::look_into(Coming& coming, LastStep last) {
  read_rest();
  if (begun_.error) std::rethrow_exception(begun_.error);
  const auto present = [](const auto& element) { return element.has_value(); };
  const bool any = std::any_of(begun_.elements.begin(), begun_.elements.end(), present);
  const bool all = std::all_of(begun_.elements.begin(), begun_.elements.end(), present);
  const bool shared = source_->core->input_is_shared();
  const bool fills_up = last == LastStep::kFilledUp || source_->fills_up_last_step();
  coming.here.has_data = any && (all || shared || fills_up);
  if (all || !(coming.here.has_data || shared)) return;
  try {
    coming.dummy = make_dummy();
  } catch (...) {
    if (any) throw;
    coming.error = internal::caught_error();
    coming.here.unknown_spec = pipeline_of(0);
  }
}

// Throws the error of a step. If it has one in any process, all processes throw one.
void StepReader::throw_agreed(const Coming& coming, const InputStatus& group) {
  if (group.late >= 0) {
    if (coming.here.late >= 0) std::rethrow_exception(coming.error);
    throw AbortedError(
        str("the input of worker ", group.late,
            " missed its read deadline; nothing was taken on any worker: ask for the "
            "step again"));
  }
  const bool unknown = group.has_data && group.unknown_spec >= 0;
  if (group.failed < 0 && !unknown) return;
  drop_begun();
  before_last_.reset();
  last_batch_.reset();
  ++steps_;
  const bool own = group.failed >= 0 ? coming.here.failed >= 0 : coming.here.unknown_spec >= 0;
  const std::exception_ptr told = told_by_all(own ? coming.error : nullptr);
  if (own) std::rethrow_exception(coming.error);
  const internal::ErrorRecord reason = internal::record_error(told);
  internal::throw_error(
      reason.code,
      str("the input of worker ", group.failed >= 0 ? group.failed : group.unknown_spec,
          " failed: ", reason.message, "; the step is left out on all workers, and the ",
          "following call gives the next one"),
      reason.task);
}

// COLLECTIVE over the tasks: the error of one that has some.
std::exception_ptr StepReader::told_by_all(const std::exception_ptr& mine) const {
  if (!source_->core->input_is_shared()) return mine;
  const auto told = internal::tell_errors(source_->core->group(), mine, "the input's errors");
  return told ? told->error : std::make_exception_ptr(AbortedError("it does not say why"));
}

// A batch of no rows. If it cannot be found out how elements look, it looks like those of this
// step.
Structure StepReader::make_dummy() const {
  try {
    return internal::dummy_batch(source_->component_spec());
  } catch (const internal::InputDeadlineExceeded&) {
    throw;
  } catch (const std::exception&) {
    const auto present = std::find_if(begun_.elements.begin(), begun_.elements.end(),
                                      [](const auto& element) { return element.has_value(); });
    if (present == begun_.elements.end()) throw;
    return internal::dummy_batch(StructureSpec::of(**present));
  }
}

// The number in the sync group of the pipeline that reads for local replica `replica`.
int StepReader::pipeline_of(size_t replica) const {
  // A task that reads batches for hosted replicas has no number among pipelines: all read the same.
  if (source_->feed == Feed::kPieces) return source_->core->group().view()->task;
  if (source_->feed == Feed::kOwnPipeline) return range_.first + static_cast<int>(replica);
  size_t worker = 0;
  for (size_t end = 0; worker + 1 < iterators_.size(); ++worker) {
    end += source_->num_replicas(worker);
    if (replica < end) break;
  }
  return source_->numbering.first + static_cast<int>(worker);
}

void StepReader::read_rest() {
  if (source_->feed == Feed::kPieces) return read_pieces();
  if (is_hosted() && begun_.elements.empty()) before_begun_ = mark();
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
        const std::exception_ptr error = internal::caught_error();
        if (!begun_.error) {
          begun_.error = error;
          begun_.failed = begun_.elements.size();
        }
      }
      begun_.elements.push_back(std::move(element));
    }
  }
}

// Saves which elements came, and the elements. If one has failed, saves its error instead: the
// others will be dropped.
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
    if (!element) continue;
    elements.push_back(source_->copies ? source_->copies->on_host(*element) : *element);
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
  home_.check(kIteratorName);
  const internal::ExclusiveUse::Hold hold(use_, kIteratorName);
  const bool nothing_begun = begun_.elements.empty() || is_hosted();
  if (iterators_.size() == 1 && nothing_begun) return state_of(0);
  IteratorState state;
  state.set_int("workers", static_cast<int64_t>(iterators_.size()));
  for (size_t i = 0; i < iterators_.size(); ++i) {
    state.set_child(pipeline_name(i), state_of(i));
  }
  if (!nothing_begun) state.set_child(kBegun, save_begun());
  return state;
}

IteratorState StepReader::state_of(size_t pipeline) const {
  if (batch_) return batch_->before.known()[pipeline];
  if (before_begun_) return before_begun_->known()[pipeline];
  return iterators_[pipeline].state();
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
    const IteratorState& own = of_one ? state : state.child(pipeline_name(i));
    place.iterators.push_back(iterators_[i].reader()->place_at(own));
  }
  if (source_->feed == Feed::kOwnPipeline) {
    place.pipelines.resize(source_->pipelines.size());
    for (size_t i = 0; i < iterators_.size(); ++i) {
      place.pipelines[static_cast<size_t>(range_.first) + i] =
          of_one ? state : state.child(pipeline_name(i));
    }
  }
  if (!of_one && state.has(kBegun)) place.begun = read_begun(state.child(kBegun));
  return place;
}

void StepReader::go_to(Place place) {
  home_.check(kIteratorName);
  const internal::ExclusiveUse::Hold hold(use_, kIteratorName);
  for (size_t i = 0; i < place.iterators.size(); ++i) {
    if (place.iterators[i].pass) epoch_ = *place.iterators[i].pass;
    iterators_[i].reader()->go_to(std::move(place.iterators[i]));
  }
  pipelines_ = std::move(place.pipelines);
  begin_at(std::move(place.begun));
}

void StepReader::begin_at(Begun begun) {
  batch_ = last_batch_ = following_ = std::nullopt;
  before_begun_ = before_last_ = std::nullopt;
  last_pieces_.clear();
  restarted_ = false;
  begun_ = std::move(begun);
  coming_ = {};
  pass_ = internal::InputPlace::kRestored;
  steps_ = 0;
}

void StepReader::restore(const IteratorState& state) { go_to(place_at(state)); }

}  // namespace cohort::distribute::internal_input
