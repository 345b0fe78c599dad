// For tests: tasks that are threads of one process but share only unix sockets, as processes do. In
// every call all tasks send their bytes to task 0, which sends all of them to all tasks. The
// networks that connect processes are in network/networks.h.
#pragma once

#include <memory>
#include <vector>

#include "cohort/collective/communicator.h"

namespace cohort::collective {

// Returns one communicator per task.
std::vector<std::shared_ptr<Communicator>> make_socket_communicators(int size,
                                                                     int64_t generation = 0);

}  // namespace cohort::collective
