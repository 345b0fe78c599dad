// How fast this machine's memory lets an all-reduce be.
#pragma once

#include <cstdint>

namespace bench {

// Seconds in which all cores together read `bytes` of floats of each of `ranks` buffers, add them,
// and write the sums into each: what every all-reduce in shared memory must do at least.
double time_memory_limit(int ranks, int64_t bytes, double seconds);

}  // namespace bench
