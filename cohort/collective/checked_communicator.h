// Ensures that the tasks of a group make the same calls, whatever the backend.
//
// Before each call the tasks tell each other which one it is. If the calls differ, all tasks throw
// an error that names two tasks and their calls, before any data has moved. Without this check,
// backends hang, abort an innocent task, or add values that do not belong together.
#pragma once

#include <memory>

#include "cohort/collective/communicator.h"

namespace cohort::collective {

// Wraps `backend`. Every call can then also throw FailedPrecondition: another task makes a
// different call, or has another name, signature, count, dtype, position in the sequence of calls,
// or generation. The communicator can be used again after this error, since no task has made the
// call.
std::shared_ptr<Communicator> checked(std::shared_ptr<Communicator> backend);

}  // namespace cohort::collective
