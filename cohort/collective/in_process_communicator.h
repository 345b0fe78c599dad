// A communicator between tasks that are threads of one process: the cluster that a test or a
// notebook creates for itself. The tasks share memory, so each adds one slice of all tasks' values
// directly from where they lie.
#pragma once

#include <chrono>
#include <memory>
#include <vector>

#include "cohort/collective/communicator.h"

namespace cohort::collective {

// Returns one communicator per task. Together they keep their shared state alive.
std::vector<std::shared_ptr<Communicator>> make_in_process_communicators(int size,
                                                                         int64_t generation = 0);

}  // namespace cohort::collective
