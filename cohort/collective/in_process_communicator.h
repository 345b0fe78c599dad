// Tasks that are threads of one process: the cluster that a test or a notebook makes for itself.
// They share memory, so each adds up one slice of everybody's values straight from where they lie.
#pragma once

#include <chrono>
#include <memory>
#include <vector>

#include "cohort/collective/communicator.h"

namespace cohort::collective {

// One communicator for each of `size` tasks, each to be used by a thread of its own. They keep what
// they share alive.
std::vector<std::shared_ptr<Communicator>> make_in_process_communicators(int size,
                                                                         int64_t generation = 0);

}  // namespace cohort::collective
