#include "cohort/distribute/input/step_reader.h"

#include <algorithm>
#include <cstring>

#include "cohort/core/caught_error.h"
#include "cohort/data/iteration/input_deadline.h"
#include "cohort/distribute/core/strategy_core.h"
#include "cohort/distribute/input/dummy_batch.h"
#include "cohort/distribute/tasks/task_errors.h"

namespace cohort::distribute::internal_input {

using data::IteratorState;
using internal::InputStatus;
using internal::str;

StepReader::StepReader(std::shared_ptr<const Source> source) : source_(std::move(source)) {
  const uint64_t pass = source_->passes.fetch_add(1);
  pass_ = static_cast<int64_t>(pass);
  epoch_ = pass;
  shared_ = source_->shared;
  const auto view = source_->core->group().view();
  range_ = {view->first_replica(), view->first_replica() + view->num_local_replicas()};
  generation_ = view->generation;
  if (source_->feed == Feed::kOwnPipeline) {
    iterators_ = pipelines_at(range_, 0);
    return;
  }
  for (size_t i = 0; i < source_->pipelines.size(); ++i) iterators_.push_back(make_iterator(i));
}

data::DatasetIterator StepReader::make_iterator(size_t pipeline) const {
  const data::Dataset& dataset = source_->pipelines[pipeline];
  // Readers of the same batches draw the same random numbers for them.
  const auto first = source_->feed == Feed::kOwnPipeline
                         ? uint64_t{0}
                         : static_cast<uint64_t>(source_->numbering.first);
  return {dataset.node(),
          internal::IteratorContext{.epoch = epoch_,
                                    .passes = {source_, &source_->passes},
                                    .worker = source_->shared ? 0 : first + pipeline,
                                    .deterministic = dataset.options().is_deterministic()}};
}

std::optional<StepReader::Step> StepReader::next(LastStep last) {
  home_.check(kIteratorName);
  const internal::ExclusiveUse::Hold hold(use_, kIteratorName);
  follow_group();
  // has_next() may have left out what is filled up here. Elements that were read stay so.
  const bool may_be_left_out = coming_ && !coming_->group && !coming_->here.has_data;
  if (last == LastStep::kFilledUp && may_be_left_out) coming_.reset();
  if (!coming_) look(last);
  Coming coming = *std::exchange(coming_, {});
  const InputStatus group = agreed(coming);
  throw_agreed(coming, group);
  if (!group.has_data) {
    end_here();
    return std::nullopt;
  }
  Begun whole = std::exchange(begun_, {});
  std::optional<Mark> before = std::exchange(before_begun_, std::nullopt);
  ++steps_;
  at_end_ = false;
  Step step;
  for (std::optional<Structure>& element : whole.elements) {
    step.push_back(element ? *std::move(element) : *coming.dummy);
  }
  if (is_hosted()) step_returned(step, std::move(before));
  if (coming.group) look(LastStep::kAsShapesSay);
  return step;
}

bool StepReader::has_next() {
  home_.check(kIteratorName);
  const internal::ExclusiveUse::Hold hold(use_, kIteratorName);
  follow_group();
  looks_ahead_ = true;
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

// Whether other tasks have to be told what there is. Where all read the same batches, they know.
bool StepReader::is_shared() const {
  return source_->feed != Feed::kPieces && source_->core->input_is_shared();
}

// Reads the next step and tells the group what there is.
void StepReader::look(LastStep last) {
  Coming coming = look_here(last);
  if (is_shared()) {
    try {
      coming.group = agree(coming, last);
    } catch (...) {
      coming.group = [error = std::current_exception()]() -> InputStatus {
        std::rethrow_exception(error);
      };
    }
  }
  coming_ = std::move(coming);
}

// Other replicas are here where the group has formed again meanwhile.
internal::InputAnswer StepReader::agree(Coming& coming, LastStep last) {
  internal::StrategyCore& core = *source_->core;
  const internal::InputPlace place{
      .dataset = source_->numbering.dataset, .pass = pass_, .step = steps_};
  if (!is_hosted()) return core.agree_on_input(coming.here, place);
  const std::string answer = core.repeatable([&] {
    if (follow_group()) coming = look_here(last);
    const InputStatus all = core.agree_on_input(coming.here, place)();
    return std::string(reinterpret_cast<const char*>(&all), sizeof all);
  });
  if (follow_group()) coming = look_here(last);
  InputStatus all;
  std::memcpy(&all, answer.data(), sizeof all);
  return [all] { return all; };
}

// A failure belongs to the step, and is kept for it.
StepReader::Coming StepReader::look_here(LastStep last) {
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
  return coming;
}

// Fills up a step that lacks some batches with dummies if any process has batches for it. If there
// is a group, only the group knows that.
void StepReader::look_into(Coming& coming, LastStep last) {
  read_rest();
  if (begun_.error) std::rethrow_exception(begun_.error);
  const auto present = [](const auto& element) { return element.has_value(); };
  const bool any = std::any_of(begun_.elements.begin(), begun_.elements.end(), present);
  const bool all = std::all_of(begun_.elements.begin(), begun_.elements.end(), present);
  const bool shared = is_shared();
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
  if (!is_shared()) return mine;
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
  if (begun_.elements.empty() && !at_end_) mark_begun();
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

}  // namespace cohort::distribute::internal_input
