// How long OpenMP's threads spin before they sleep.
#pragma once

namespace cohort::internal {

// After each operation libtorch's threads, which are GNU OpenMP's, spin for milliseconds, and so
// does a caller that waits for one of them. If they have a neighbour on their cores, that costs
// them their share: an MLP trained at a tenth of its speed. OpenMP's threads sleep soon instead if
// OpenMP has more threads than cores (GOMP_SPINCOUNT in its manual). So while cores are contended,
// this keeps some more threads, which sleep.
//
// It looks for contention, too (host/preemption_watch.h), because libtorch does not say when its
// threads were late. Call it before work whose operations have several threads. pool_threads: how
// many OpenMP has started, or is to start, for the callers of such work. Does nothing if there is
// another OpenMP, and in a child of fork.
// Thread safety: any thread.
void adapt_openmp_patience(int pool_threads);

// Whether OpenMP's threads sleep soon at present.
bool openmp_sleeps_soon();

}  // namespace cohort::internal
