// What variables' constraints ask for after an update.
#pragma once

#include <cstddef>
#include <span>

#include "cohort/distribute/gradients/slice_pass.h"

namespace cohort::internal {

// One of the replicas of a task.
struct LocalReplica {
  size_t id;
  size_t count;
};

// The replica's share of applying the constraints of those targets that `sources` have a gradient
// of. All replicas of the task make the call, once the update is done, and none reads the variables
// meanwhile. Every component of every task gets the same bits.
// Errors: those of the constraints.
void constrain_targets(std::span<const UpdateTarget> targets, const GradientSources& sources,
                       const LocalReplica& replica);

}  // namespace cohort::internal
