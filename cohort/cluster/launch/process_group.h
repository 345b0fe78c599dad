// The processes that share a group: a task's first process and what it has started.
#pragma once

#include <sys/types.h>

namespace cohort::internal {

// Whether a process of the group lives; one that has ended and is not yet reaped does not. False
// where /proc cannot be read. Takes a millisecond or so: it looks at all processes.
bool group_lives(pid_t group);

}  // namespace cohort::internal
