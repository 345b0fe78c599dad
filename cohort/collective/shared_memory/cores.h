// Where the tasks of a host run: whether one that polls keeps another from its core.
#pragma once

#include <sched.h>

#include <span>

namespace cohort::collective::shared_memory {

// The cores that the calling thread may use; none where the system does not tell.
cpu_set_t own_cores();

// Whether each task can have a core to itself, of those that it may use.
bool each_can_have_a_core(std::span<const cpu_set_t> tasks);

}  // namespace cohort::collective::shared_memory
