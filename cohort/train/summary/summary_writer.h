// Writers of summaries: they write TensorBoard's event files.
//
//   auto writer = tf::summary::create_file_writer("logs/train");
//   for (int64_t step = 0; step < steps; ++step) {
//     auto scope = writer.as_default(step);
//     tf::summary::scalar("loss", train());
//   }
#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include "cohort/core/export.h"
#include "cohort/core/structure/tensor.h"

namespace cohort::summary {
class RecordingScope;
class SummaryWriter;
}  // namespace cohort::summary

namespace cohort::internal {
class EventWriter;
struct RecordingState;

// A scope like as_default's, whose end does not flush.
COHORT_API summary::RecordingScope recording_scope(const summary::SummaryWriter& writer);
}  // namespace cohort::internal

namespace cohort::summary {

struct FileWriterOptions {
  // How many summaries may wait before a thread writes them and makes them durable.
  int64_t max_queue = 10;
  // After how many milliseconds it does so at the latest.
  int64_t flush_millis = 120'000;
  std::string filename_suffix = ".v2";
  // If workers run one program side by side (MultiWorkerMirroredStrategy), the first of them
  // writes, and the writers of the others write nothing. True: this one writes all the same.
  bool every_worker = false;
};

// The step that a summary belongs to: a number, a variable (optimizer.iterations()), or a function.
// The last two are asked for each summary.
class COHORT_API Step {
 public:
  Step(int64_t step) : value_([step] { return step; }) {}
  Step(int step) : Step(static_cast<int64_t>(step)) {}
  template <class Variable>
  requires requires(const Variable& variable) {
    { variable.value() } -> std::convertible_to<Tensor>;
  }
  Step(Variable variable)
      : value_([variable = std::move(variable)] {
          return Tensor(variable.value()).template item<int64_t>();
        }) {}
  template <class Function>
  requires std::is_invocable_r_v<int64_t, Function&> Step(Function function)
      : value_(std::move(function)) {}

  const std::function<int64_t()>& function() const { return value_; }

 private:
  std::function<int64_t()> value_;
};

// What as_default and record_if return: it holds for this thread, and for the replicas of steps
// that this thread runs, until it is closed or destroyed. Scopes end in the reverse order of their
// beginning, on their own thread.
class [[nodiscard]] COHORT_API RecordingScope {
 public:
  // Made by as_default and record_if. keeps_step: a set_step inside holds beyond the end.
  RecordingScope(const internal::RecordingState& state,
                 std::shared_ptr<internal::EventWriter> flushed, bool keeps_step);
  // Closes; an error is logged.
  ~RecordingScope();
  RecordingScope(const RecordingScope&) = delete;
  RecordingScope& operator=(const RecordingScope&) = delete;

  // Ends the scope. One of as_default also flushes its writer. A second call does nothing.
  // Errors: FailedPrecondition (a scope entered later is open; another thread), of the flush.
  void close();

 private:
  const std::shared_ptr<internal::EventWriter> flushed_;  // null: nothing to flush
  const std::shared_ptr<const internal::RecordingState> previous_;
  const bool keeps_step_;
  bool open_ = true;
};

// A handle; copies write to the same file. When the last one is destroyed, all that was recorded is
// written, and an error is logged.
// Thread safety: any thread.
class COHORT_API SummaryWriter {
 public:
  explicit SummaryWriter(std::shared_ptr<internal::EventWriter> writer)
      : writer_(std::move(writer)) {}

  // Makes this the writer of the calling thread's summaries, and `step` theirs where they name
  // none.
  // Errors: FailedPrecondition (closed).
  RecordingScope as_default() const;
  RecordingScope as_default(const Step& step) const;

  // Returns when all summaries recorded so far are on the device.
  // Errors: of writing, perhaps of an earlier summary (ResourceExhausted: a full disk);
  // DeadlineExceeded (the disk has not answered for a minute).
  void flush() const;
  // Flushes and ends the file; summaries then are a FailedPrecondition. Errors: as flush.
  void close() const;
  // The file; empty for a writer that writes nothing.
  std::string path() const;
  // Whether both are handles of one.
  bool operator==(const SummaryWriter&) const = default;

 private:
  friend RecordingScope internal::recording_scope(const SummaryWriter& writer);

  std::shared_ptr<internal::EventWriter> writer_;  // null: writes nothing
};

// Makes the directory `logdir` and in it a file "events.out.tfevents.<time>.<host>.<pid>.<n>.v2",
// which a thread of its own writes. TensorBoard shows a directory of such files as a run. In a
// worker that is not the first of its cluster, a writer that writes nothing (see every_worker).
// Errors: InvalidArgument (an option below 0; logdir is a file), PermissionDenied,
// ResourceExhausted.
[[nodiscard]] COHORT_API SummaryWriter create_file_writer(const std::string& logdir,
                                                          const FileWriterOptions& options = {});
// A writer that writes nothing, for tasks that should not.
[[nodiscard]] COHORT_API SummaryWriter create_noop_writer();

// In its scope, summaries are recorded only if the condition holds when they are made.
COHORT_API RecordingScope record_if(std::function<bool()> condition);
COHORT_API RecordingScope record_if(bool condition);
// Whether a summary made now would be recorded: the calling thread has a writer, record_if's
// condition holds, and in a step this is replica 0.
COHORT_API bool should_record_summaries();

// Flushes `writer`, or the calling thread's. Errors: as SummaryWriter::flush.
COHORT_API void flush(const SummaryWriter* writer = nullptr);

namespace experimental {
// The step of the calling thread's summaries that name none.
COHORT_API void set_step(const Step& step);
// None.
COHORT_API void set_step(std::nullopt_t);
COHORT_API std::optional<int64_t> get_step();
}  // namespace experimental

}  // namespace cohort::summary
