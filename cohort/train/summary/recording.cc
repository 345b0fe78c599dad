#include "cohort/train/summary/recording.h"

#include <atomic>
#include <utility>

namespace cohort::internal {
namespace {

thread_local RecordingStatePtr current_state;
thread_local RecordingGate current_gate = nullptr;
std::atomic<bool> another_task_writes{false};

}  // namespace

const RecordingStatePtr& recording_state() { return current_state; }
void set_recording_state(RecordingStatePtr state) { current_state = std::move(state); }

ScopedRecordingState::ScopedRecordingState(RecordingStatePtr state)
    : previous_(std::exchange(current_state, std::move(state))) {}
ScopedRecordingState::~ScopedRecordingState() { current_state = std::move(previous_); }

RecordingGate recording_gate() { return current_gate; }

ScopedRecordingGate::ScopedRecordingGate(RecordingGate gate)
    : previous_(std::exchange(current_gate, gate)) {}
ScopedRecordingGate::~ScopedRecordingGate() { current_gate = previous_; }

void leave_summaries_to_another_task(bool leave) { another_task_writes = leave; }
bool summaries_are_left_to_another_task() { return another_task_writes; }

}  // namespace cohort::internal
