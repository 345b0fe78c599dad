// Holds that the tasks of a group make the same calls, whatever the backend.
//
// Before each call the tasks tell each other which one it is. Where they differ, all of them throw
// an error that names two tasks and their calls, before a number has moved: without that, backends
// hang, abort an innocent task, or add up what does not belong together.
#pragma once

#include <memory>

#include "cohort/collective/communicator.h"

namespace cohort::collective {

// Adds to every call: FailedPrecondition (another call, name, signature, count, dtype or place in
// the sequence of calls, or another generation, on another task; the group can go on, since no task
// has made the call).
std::shared_ptr<Communicator> checked(std::shared_ptr<Communicator> backend);

}  // namespace cohort::collective
