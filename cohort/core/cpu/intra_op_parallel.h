// Work that the threads of one tensor operation share.
#pragma once

#include <cstdint>

#include "cohort/core/function_ref.h"

namespace cohort::internal {

// body(first, last) for parts of [begin, end) of `grain` at least (the last may be smaller), on the
// calling thread and others, intra_op_threads() together. Who does which part, and how many parts there
// are, differs from call to call: results must not depend on that.
//
// On a machine that has its cores free these are libtorch's own OpenMP threads, of which libtorch's
// operations have just made use. They get equal parts and meet at the end, spinning, so that a neighbour
// on one core holds up all: a step of 4 ms took 41 ms beside builds. Where the caller has waited long
// for the others, cores are contended for a while (host/core_contention.h), and a team of its own takes
// over (intra_op_team.h), which waits for nobody. The team alone would have to share cores with OpenMP's
// threads, who spin for milliseconds after libtorch's operations: an LSTM trained at half its speed then.
//
// Where this library is built with sanitizers or by another compiler than GCC there is the team only
// (included elsewhere at::parallel_for is a plain loop: libtorch's headers start threads only in what is
// compiled with OpenMP). In a child of fork the caller does all.
// Thread safety: any thread. Errors: one that body throws, after all have ended.
void intra_op_parallel_for(int64_t begin, int64_t end, int64_t grain,
                           FunctionRef<void(int64_t, int64_t)> body);

}  // namespace cohort::internal
