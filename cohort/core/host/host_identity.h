// Identifies the host on which this process runs.
#pragma once

#include <string>

namespace cohort::internal {

// The same text in all processes of one user that reach each other's abstract unix sockets, and in
// no others. It stands for kernel, network namespace and user. If the system does not tell these,
// it is a text that no other process has.
std::string host_identity();

}  // namespace cohort::internal
