// How long what real processes do may take in a test.
#pragma once

#include <cstdlib>

namespace cohort::internal {

// The goal, where scripts/faults measures it; five times the goal elsewhere: a shared machine may
// stand still for a second or two, which is no defect of what is tested.
template <typename Time>
Time time_limit(Time goal) {
  return std::getenv("COHORT_FAULT_REPETITIONS") ? goal : 5 * goal;
}

}  // namespace cohort::internal
