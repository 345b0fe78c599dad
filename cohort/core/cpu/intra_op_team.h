// Threads of our own that share the work of one tensor operation.
#pragma once

#include <cstdint>

#include "cohort/core/function_ref.h"

namespace cohort::internal {

// body(first, last) for parts of [begin, end) of `grain` at least (the last may be smaller), on the
// calling thread and `threads` - 1 helpers that it keeps. Each takes a part when it is done with its
// last one, the caller too: where a helper comes late, since its core does something else, the others
// do its parts, and nobody waits for it. Helpers look out for the next call for a moment, then sleep.
// Within body tensor operations have one thread, and so have calls of intra_op_parallel_for. A helper
// takes on how the caller treats denormal numbers (flush_denormals.h). Where no thread is to be had the
// caller does all.
// Thread safety: any thread; not from within body, and not in a child of the process of the first call.
// Errors: one that body throws, after all have ended; parts that nobody has begun by then are left out.
void share_by_team(int threads, int64_t begin, int64_t end, int64_t grain,
                   FunctionRef<void(int64_t, int64_t)> body);

}  // namespace cohort::internal
