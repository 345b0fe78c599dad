// Which host this process runs on.
#pragma once

#include <string>

namespace cohort::internal {

// The same text in processes that reach each other's abstract unix sockets and are of one user, and in
// no others: kernel, network namespace and user. Where the system does not tell, one that no other process has.
std::string host_identity();

}  // namespace cohort::internal
