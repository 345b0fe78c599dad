// The tasks of a strategy's group as a group that saves and restores together: task 0 writes.
#pragma once

#include <memory>

#include "cohort/collective/sync_group.h"
#include "cohort/train/objects/save_group.h"

namespace cohort::internal {

// `group` must outlive it. Not while a step runs.
std::shared_ptr<train::SaveGroup> make_task_save_group(collective::SyncGroup& group);

}  // namespace cohort::internal
