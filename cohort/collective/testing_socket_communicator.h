// For tests: tasks that are threads of one process with nothing in common but sockets, as processes
// have. Every call sends everybody's bytes through task 0, which sends all of them to all.
#pragma once

#include <memory>
#include <vector>

#include "cohort/collective/communicator.h"

namespace cohort::collective {

// One for each of `size` tasks.
std::vector<std::shared_ptr<Communicator>> make_socket_communicators(int size,
                                                                     int64_t generation = 0);

}  // namespace cohort::collective
