// How long OpenMP's threads spin before they sleep.
#pragma once

namespace cohort::internal {

// After each operation libtorch's threads, who are GNU OpenMP's, spin for milliseconds, and so does a caller
// that waits for one of them. Beside a neighbour on their cores that costs them their share: an MLP trained at
// a tenth of its speed. They sleep soon instead where OpenMP has more threads than cores
// (GOMP_SPINCOUNT in its manual), so there are some more, who sleep, while cores are contended.
//
// Looks for contention, too (host/preemption_watch.h): libtorch does not say when its threads were late.
// Call it before work whose operations have several threads. pool_threads: those that OpenMP has started, or
// is to start, for the callers of such work. Does nothing where there is another OpenMP, and in a child of
// fork.
// Thread safety: any thread.
void adapt_openmp_patience(int pool_threads);

// Whether they sleep soon now.
bool openmp_sleeps_soon();

}  // namespace cohort::internal
