// A wrapper that limits how long every call of a communicator waits.
#pragma once

#include <chrono>
#include <memory>

#include "cohort/collective/communicator.h"

namespace cohort::collective {

// A call waits as long as it says itself, and no longer than `most`.
std::shared_ptr<Communicator> limited(std::shared_ptr<Communicator> communicator,
                                      std::chrono::nanoseconds most);

}  // namespace cohort::collective
