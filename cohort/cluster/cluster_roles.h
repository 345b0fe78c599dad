// Which role a task has in a cluster.
#pragma once

#include <optional>

#include "cohort/cluster/cluster_spec.h"
#include "cohort/cluster/rpc/role.h"
#include "cohort/core/program/task_id.h"

namespace cohort::internal {

// The job of people's certificates, of no task.
inline constexpr char kOperatorJob[] = "operator";

// Nothing for who has no business in the cluster. A chief coordinates where there are ps tasks, and
// trains along where there are none. A coordinator and an evaluator need not be in the spec.
std::optional<rpc::Role> role_in(const train::ClusterSpec& spec, const TaskId& task);

// The task that runs the coordination service: the chief, else the first worker, else the first task.
TaskId coordinating_task(const train::ClusterSpec& spec);

}  // namespace cohort::internal
