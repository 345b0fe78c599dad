// The servers of this process as tasks of a parameter server cluster.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "cohort/parameter_server/closures/worker_side.h"

namespace cohort::internal {

class ServerCore;

// Adds to a server what its task does for the strategy: a ps task's store, a worker's closures.
// Other servers stay as they are. A server that has served an earlier strategy goes on: what that
// one had there goes when this one's coordinator takes the task. Returns whether the server is of
// the cluster.
bool serve_task(ServerCore& server, const std::weak_ptr<WorkerSide>& worker);

// Lets functions of sessions below begin no more in workers of this process, and the inputs go that
// they have made. Waits until they have ended. Returns who still uses which at the deadline; empty:
// nobody.
std::string end_functions(WorkerSide& worker, SessionId below,
                          std::chrono::steady_clock::time_point deadline);

// Waits until a task of this process does nothing for programs any more; returns whether that was
// before the deadline.
bool wait_until_idle(const train::ClusterSpec& cluster, const TaskId& task,
                     std::chrono::steady_clock::time_point deadline);

}  // namespace cohort::internal
