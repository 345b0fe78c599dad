// What decides on a thread whether summaries are recorded, by which writer, and for which step.
//
//   const RecordingStatePtr callers = recording_state();
//   std::thread([callers] { const ScopedRecordingState as_caller(callers); ... });
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

namespace cohort::internal {

class EventWriter;

// Immutable, so that threads can share it.
struct RecordingState {
  std::shared_ptr<EventWriter> writer;  // null: none
  std::function<int64_t()> step;        // empty: none is set
  std::function<bool()> condition;      // empty: always
  const void* scope = nullptr;          // the innermost scope that is open
};
using RecordingStatePtr = std::shared_ptr<const RecordingState>;

// The calling thread's; null where nothing was set.
const RecordingStatePtr& recording_state();
void set_recording_state(RecordingStatePtr state);

// The state of the calling thread, for a lifetime.
class [[nodiscard]] ScopedRecordingState {
 public:
  explicit ScopedRecordingState(RecordingStatePtr state);
  ~ScopedRecordingState();
  ScopedRecordingState(const ScopedRecordingState&) = delete;
  ScopedRecordingState& operator=(const ScopedRecordingState&) = delete;

 private:
  RecordingStatePtr previous_;
};

// Asked before each summary of the calling thread, whatever its state says: strategies let one
// replica of a step record.
using RecordingGate = bool (*)();
RecordingGate recording_gate();  // null: open

class [[nodiscard]] ScopedRecordingGate {
 public:
  explicit ScopedRecordingGate(RecordingGate gate);
  ~ScopedRecordingGate();
  ScopedRecordingGate(const ScopedRecordingGate&) = delete;
  ScopedRecordingGate& operator=(const ScopedRecordingGate&) = delete;

 private:
  RecordingGate previous_;
};

// Whether writers that are made in this process from here on write nothing, since another task,
// which runs the same program, writes. Thread safety: any thread.
void leave_summaries_to_another_task(bool leave);
bool summaries_are_left_to_another_task();

}  // namespace cohort::internal
