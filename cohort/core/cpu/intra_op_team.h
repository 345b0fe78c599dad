// Threads of our own that share the work of one tensor operation.
#pragma once

#include <cstdint>

#include "cohort/core/function_ref.h"

namespace cohort::internal {

// Calls body(first, last) for parts of [begin, end) of `grain` elements at least (the last may be
// smaller), on the calling thread and `threads` - 1 helpers that it keeps. Each thread, the caller
// too, takes a part when it is done with its last one. If a helper comes late because its core does
// something else, the others do its parts, and nobody waits for it. Helpers poll for the next call
// for a moment, then sleep. Within body, tensor operations and calls of intra_op_parallel_for have
// one thread. A helper treats denormal numbers as the caller does (flush_denormals.h). If no thread
// is to be had, the caller does all parts.
// Thread safety: any thread; not from within body, and not in a child of the process of the first
// call.
// Errors: one that body throws, after all have ended; parts that nobody has begun by then are left
// out.
void share_by_team(int threads, int64_t begin, int64_t end, int64_t grain,
                   FunctionRef<void(int64_t, int64_t)> body);

}  // namespace cohort::internal
