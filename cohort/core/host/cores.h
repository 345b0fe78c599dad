// The cores on which the tasks of a host run: whether a task that polls keeps another one from its
// core, and on how many cores each task may count.
#pragma once

#include <sched.h>

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace cohort::internal {

// The cores that the calling thread may use; none where the system does not tell.
cpu_set_t own_cores();

// The cores as bytes, for another process of this host. Bytes of another length decode to no cores.
std::string encode_cores(const cpu_set_t& cores);
cpu_set_t decode_cores(std::string_view bytes);

// Whether each task can have a core to itself, of those that it may use.
bool each_can_have_a_core(std::span<const cpu_set_t> tasks);

// How many cores task `self` has if the tasks that may use a core divide it: at least 1. 0 if the
// system does not tell which cores it may use.
int share_of_cores(std::span<const cpu_set_t> tasks, size_t self);

}  // namespace cohort::internal
