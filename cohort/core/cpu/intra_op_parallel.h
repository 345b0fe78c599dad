// Work that the threads of one tensor operation share.
#pragma once

#include <cstdint>

#include "cohort/core/function_ref.h"

namespace cohort::internal {

// Calls body(first, last) for parts of [begin, end) of `grain` elements at least (the last may be
// smaller), on the calling thread and others, intra_op_threads() together. The number of parts, and
// which thread does which part, differ from call to call: results must not depend on them.
//
// On a machine with free cores the other threads are libtorch's own OpenMP threads, which
// libtorch's operations have just used. They get equal parts and spin at a barrier at the end, so
// that a neighbour on one core holds up all: a step of 4 ms took 41 ms beside builds. If the caller
// has waited long for the others, cores count as contended for a while (host/core_contention.h).
// The caller's own team then takes over (intra_op_team.h), which waits for nobody. The team alone
// would have to share cores with OpenMP's threads, which spin for milliseconds after libtorch's
// operations: an LSTM then trained at half its speed.
//
// If this library is built with sanitizers, or by another compiler than GCC, there is only the
// team: libtorch's headers start threads only in code that is compiled with OpenMP, and
// at::parallel_for is a plain loop elsewhere. In a child of fork the caller does all parts.
// Thread safety: any thread.
// Errors: one that body throws, after all have ended.
void intra_op_parallel_for(int64_t begin, int64_t end, int64_t grain,
                           FunctionRef<void(int64_t, int64_t)> body);

}  // namespace cohort::internal
