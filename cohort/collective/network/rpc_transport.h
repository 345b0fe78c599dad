// Bytes between the tasks of a group over their servers. If the servers have certificates, the
// bytes are encrypted and their sender is authenticated.
#pragma once

#include <memory>

#include "cohort/collective/group_member.h"
#include "cohort/collective/network/transport.h"

namespace cohort::internal {
class ServerCore;
}

namespace cohort::collective {

// COLLECTIVE over the tasks of `member`. `server` is this task's, and outlives the transport.
// Errors: DeadlineExceeded (names the tasks that have not come), Unavailable (a task was lost),
// AlreadyExists (this task is in this generation of the group), those of calls (rpc/channel.h).
std::unique_ptr<Transport> make_rpc_transport(const GroupMember& member,
                                              internal::ServerCore& server);

}  // namespace cohort::collective
