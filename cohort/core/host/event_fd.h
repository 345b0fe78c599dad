// A descriptor that wakes the threads that poll it: it is readable from a write of a number above 0
// to the next read.
#pragma once

#include "cohort/core/host/unique_fd.h"

namespace cohort::internal {

// Non-blocking. Errors: ResourceExhausted (the process, or the system, has no descriptor left).
UniqueFd make_event_fd();
// Makes it readable. A signal handler may call it.
void signal_event(int event) noexcept;

}  // namespace cohort::internal
