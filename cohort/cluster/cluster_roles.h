// Finds the role of a task in a cluster.
#pragma once

#include <optional>

#include "cohort/cluster/cluster_spec.h"
#include "cohort/cluster/rpc/role.h"
#include "cohort/core/program/task_id.h"

namespace cohort::internal {

// The job in certificates of people. No task has it.
inline constexpr char kOperatorJob[] = "operator";

// The role of the task; nullopt if it has no business in the cluster. A chief coordinates if there
// are ps tasks, and trains along if there are none. A coordinator and an evaluator need not be in
// the spec.
std::optional<rpc::Role> role_in(const train::ClusterSpec& spec, const TaskId& task);

// The task that runs the coordination service: the chief, else the first worker, else the first
// task.
TaskId coordinating_task(const train::ClusterSpec& spec);

}  // namespace cohort::internal
