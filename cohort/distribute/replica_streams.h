// Tells random generators which replica draws, and under which strategy they are made.
#pragma once

namespace cohort::internal {

// To be called before a strategy is current anywhere. Thread safety: any thread, any number of times.
void tell_generators_of_replicas();

}  // namespace cohort::internal
