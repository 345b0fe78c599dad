#include "cohort/train/summary/summary_writer.h"

#include "cohort/core/error.h"
#include "cohort/core/files/file_system.h"
#include "cohort/core/observe/logging.h"
#include "cohort/core/recording/step_recording.h"
#include "cohort/core/text.h"
#include "cohort/train/summary/event_writer.h"
#include "cohort/train/summary/recording.h"

namespace cohort::summary {
namespace {

using internal::RecordingState;
using internal::RecordingStatePtr;

RecordingState state_now() {
  const RecordingStatePtr& state = internal::recording_state();
  return state ? *state : RecordingState();
}

RecordingState state_with(const std::shared_ptr<internal::EventWriter>& writer) {
  if (writer && writer->is_closed()) {
    throw FailedPreconditionError(
        internal::str("the writer of ", internal::quoted(writer->path()), " is already closed"));
  }
  RecordingState state = state_now();
  state.writer = writer;
  return state;
}

}  // namespace

RecordingScope::RecordingScope(const RecordingState& state,
                               std::shared_ptr<internal::EventWriter> flushed, bool keeps_step)
    : flushed_(std::move(flushed)),
      previous_(internal::recording_state()),
      keeps_step_(keeps_step) {
  auto inside = std::make_shared<RecordingState>(state);
  inside->scope = this;
  internal::set_recording_state(std::move(inside));
}

void RecordingScope::close() {
  if (!open_) return;
  const RecordingStatePtr inside = internal::recording_state();
  if (!inside || inside->scope != this) {
    throw FailedPreconditionError(
        "a scope of summaries was closed while one entered later is open, or on another thread; "
        "close them in the reverse order of their beginning");
  }
  open_ = false;
  if (keeps_step_ && inside->step) {
    auto outside = previous_ ? std::make_shared<RecordingState>(*previous_)
                             : std::make_shared<RecordingState>();
    outside->step = inside->step;
    internal::set_recording_state(std::move(outside));
  } else {
    internal::set_recording_state(previous_);
  }
  if (flushed_ && !flushed_->is_closed()) flushed_->flush();
}

RecordingScope::~RecordingScope() {
  try {
    close();
  } catch (const std::exception& error) {
    internal::log(logging::Level::kError, "summaries: ", error.what());
  }
}

RecordingScope SummaryWriter::as_default() const {
  return {state_with(writer_), writer_, /*keeps_step=*/true};
}

RecordingScope SummaryWriter::as_default(const Step& step) const {
  RecordingState state = state_with(writer_);
  state.step = step.function();
  return {state, writer_, /*keeps_step=*/false};
}

void SummaryWriter::flush() const {
  if (writer_ && !writer_->is_closed()) writer_->flush();
}
void SummaryWriter::close() const {
  if (writer_) writer_->close();
}
std::string SummaryWriter::path() const { return writer_ ? writer_->path() : ""; }

SummaryWriter create_file_writer(const std::string& logdir, const FileWriterOptions& options) {
  if (internal::summaries_are_left_to_another_task() && !options.every_worker) {
    return create_noop_writer();
  }
  return SummaryWriter(std::make_shared<internal::EventWriter>(
      internal::posix_file_system(), logdir,
      internal::EventWriterOptions{
          .max_queue = options.max_queue,
          .flush_interval = std::chrono::milliseconds(options.flush_millis),
          .filename_suffix = options.filename_suffix}));
}

SummaryWriter create_noop_writer() { return SummaryWriter(nullptr); }

RecordingScope record_if(std::function<bool()> condition) {
  RecordingState state = state_now();
  state.condition = std::move(condition);
  return {state, nullptr, /*keeps_step=*/true};
}
RecordingScope record_if(bool condition) {
  return record_if([condition] { return condition; });
}

bool should_record_summaries() {
  const RecordingStatePtr& state = internal::recording_state();
  if (!state || !state->writer) return false;
  if (internal::StepRecording* const recording = internal::StepRecording::current()) {
    recording->refuse("it writes summaries, which the host reads");
  }
  const internal::RecordingGate gate = internal::recording_gate();
  if (gate != nullptr && !gate()) return false;
  return !state->condition || state->condition();
}

void flush(const SummaryWriter* writer) {
  if (writer != nullptr) return writer->flush();
  if (const RecordingStatePtr state = internal::recording_state()) {
    SummaryWriter(state->writer).flush();
  }
}

namespace experimental {

void set_step(const Step& step) {
  auto state = std::make_shared<RecordingState>(state_now());
  state->step = step.function();
  internal::set_recording_state(std::move(state));
}
void set_step(std::nullopt_t) {
  auto state = std::make_shared<RecordingState>(state_now());
  state->step = nullptr;
  internal::set_recording_state(std::move(state));
}
std::optional<int64_t> get_step() {
  const RecordingStatePtr& state = internal::recording_state();
  if (!state || !state->step) return std::nullopt;
  return state->step();
}

}  // namespace experimental

}  // namespace cohort::summary

cohort::summary::RecordingScope cohort::internal::recording_scope(
    const summary::SummaryWriter& writer) {
  return {summary::state_with(writer.writer_), nullptr, /*keeps_step=*/true};
}
