// The part of a strategy that belongs into a checkpoint.
#pragma once

#include <memory>

#include "cohort/train/objects/trackable.h"

namespace cohort::internal {

class StrategyCore;

// The random generators of the task's replicas, which steps draw from. That of replica r is the
// child "replica_r". A run with fewer replicas than were saved takes those it has; one with more
// goes on from its own seeds in the others.
std::shared_ptr<train::Trackable> make_strategy_object(std::shared_ptr<StrategyCore> core);

}  // namespace cohort::internal
