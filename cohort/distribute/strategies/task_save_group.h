// The tasks of a strategy's group as a group that saves and restores together: task 0 writes.
#pragma once

#include <memory>

#include "cohort/train/objects/save_group.h"

namespace cohort::internal {

class StrategyCore;

// core: of the strategy whose group it is, which outlives it. Not while a step runs.
std::shared_ptr<train::SaveGroup> make_task_save_group(StrategyCore& core);

}  // namespace cohort::internal
