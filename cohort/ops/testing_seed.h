// For tests: the global seed as it is when a program starts.
#pragma once

namespace cohort::internal {

// From now on there is no global seed: tests that share a process may have set one before. Thread
// safety: any thread.
void forget_seed();

}  // namespace cohort::internal
