// Connects the tasks of a group by the backends that fit where they are: shared memory between the
// processes of a host, Gloo between hosts on a network that is declared trusted, the servers'
// authenticated calls everywhere else.
#pragma once

#include <memory>
#include <string>

#include "cohort/collective/communication_options.h"
#include "cohort/collective/communicator.h"
#include "cohort/collective/group_member.h"

namespace cohort::internal {
class ServerCore;
}

namespace cohort::collective {

struct FormedGroup {
  std::shared_ptr<Communicator> communicator;
  // How many cores this task has if the tasks of its host divide them; 0: it is alone, or the
  // system does not tell.
  int cores = 0;
};

// COLLECTIVE over the tasks of `member`. `server` is this task's, and outlives the communicator.
// The log says once which backends were chosen. A task that cannot go on tells the others,
// who get its error, of the same class, within 100 ms.
// Errors: DeadlineExceeded (names the tasks that have not come), Unavailable (a task was lost),
// those of GroupMember::check, FailedPrecondition (tasks that differ in their options),
// InvalidArgument (the options).
FormedGroup form_group(const GroupMember& member, internal::ServerCore& server,
                       const distribute::experimental::CommunicationOptions& options);

// For tests: as a task whose host has this identity (shared_memory_communicator.h).
FormedGroup form_group_at(const std::string& host, const GroupMember& member,
                          internal::ServerCore& server,
                          const distribute::experimental::CommunicationOptions& options);

}  // namespace cohort::collective
