// A wrapper that limits how long the calls of a communicator wait.
#pragma once

#include <chrono>
#include <memory>

#include "cohort/collective/communicator.h"

namespace cohort::collective {

// A call waits as long as it says itself, and no longer than `most`, unless the program has said
// how long this one waits (call_timeout.h).
std::shared_ptr<Communicator> limited(std::shared_ptr<Communicator> communicator,
                                      std::chrono::nanoseconds most);

}  // namespace cohort::collective
