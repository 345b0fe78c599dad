// Ensures that the tasks of a group make the same calls, whatever the backend.
//
// Every call has a fingerprint of its generation, its position in the sequence of calls, the step
// to which it belongs, operation, name, signature, count, dtype, parts and root. The tasks compare
// it before anything moves:
//
// - If the backend compares fingerprints itself, the fingerprint goes with the call, which is free.
// - Otherwise the tasks exchange 8 bytes before the call. Calls of a plan (call_plan.h) do that
//   once for the whole plan: from its second time on, the first call promises all the others.
//
// If the calls differ, all tasks throw an error that names two tasks and their calls. Without this
// check, backends hang, abort an innocent task, or add values that do not belong together.
#pragma once

#include <cstdint>
#include <memory>

#include "cohort/collective/communicator.h"

namespace cohort::collective {

// Also counts this task's steps, which the fingerprint then includes. Otherwise a task that has
// made fewer calls in a step than the others would, in its next step, take part in calls that they
// still make in theirs. Steps without calls count, too.
class CheckedCommunicator : public Communicator {
 public:
  // Begin and end a step of this task. Ending a step that has not begun does nothing. Not during a
  // call of the same task.
  virtual void begin_step() = 0;
  virtual void end_step() = 0;
  // How many calls this task has made. Not during a call of the same task.
  virtual uint64_t calls() const = 0;
};

// Wraps `backend`. Every call can then also throw FailedPrecondition: another task makes a
// different call, or has another name, signature, count, dtype, position in the sequence of calls,
// or generation; or it makes the call in another step (the error names the step in which a task has
// made fewer calls). Nothing has moved then, on any task, and the communicator can be used again
// where the tasks are not in different steps. The exception is a task that breaks the promise of a
// plan: it throws before its own call, and ends the work of the group (Communicator::abort), so
// that the others' calls return no result.
std::shared_ptr<CheckedCommunicator> checked(std::shared_ptr<Communicator> backend);

}  // namespace cohort::collective
