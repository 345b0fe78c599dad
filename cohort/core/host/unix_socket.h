// Unix sockets between processes of one host, at abstract names, which the system forgets with the
// process.
#pragma once

#include <cstdint>
#include <string>

#include "cohort/core/host/unique_fd.h"

namespace cohort::internal {

// Both are non-blocking. Errors: ResourceExhausted.
UniqueFd listen_at_name(const std::string& name);
UniqueFd unix_socket();

enum class Connected { kYes, kNobodyListens, kTooManyWait };
// Errors: ResourceExhausted.
Connected connect_to_name(const UniqueFd& socket, const std::string& name);

// Whether the process at the other end is of this process's user.
bool is_of_same_user(int socket);
// The process at the other end, for texts: the one that connected or listened; 0 where the system
// does not say.
int64_t process_at_other_end(int socket);

}  // namespace cohort::internal
