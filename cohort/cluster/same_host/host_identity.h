// Which host this is, and unix sockets between its processes.
#pragma once

#include <string>

#include "cohort/core/files/unique_fd.h"

namespace cohort::internal::rpc {

// The same text in processes that reach each other's abstract unix sockets and are of one user, and in
// no others.
std::string same_host_identity();

// 32 hex digits that nobody can guess. Errors: ResourceExhausted (the system gives none).
std::string random_ticket();

// Of an abstract name, which the system forgets with the process; non-blocking.
// Errors: ResourceExhausted.
UniqueFd listen_at_name(const std::string& name);
// No valid one: nobody listens there, or too many wait.
UniqueFd connect_to_name(const std::string& name);
// Whether the process at the other end is of this process's user.
bool is_of_same_user(int socket);

}  // namespace cohort::internal::rpc
