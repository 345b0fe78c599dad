// How much of the time of this process's cores others have had.
#pragma once

#include <sched.h>

#include <optional>
#include <string_view>

namespace cohort::internal {

// The seconds, since some point in the past, for which the cores that this process may use worked
// for other processes, for the kernel, or (a virtual machine's) for the host's other guests.
// Nothing where the system does not tell, or where a quota takes cores away as well. The kernel
// counts in ticks of 10 ms, so only differences over some tenths of a second mean something.
// Thread safety: any thread.
std::optional<double> seconds_for_others();

// The seconds for which `cores` were busy, of the text of /proc/stat.
std::optional<double> busy_seconds(std::string_view stat, const cpu_set_t& cores,
                                   double ticks_per_second);

}  // namespace cohort::internal
