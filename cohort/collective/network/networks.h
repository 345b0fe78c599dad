// The networks over which tasks that share no memory are connected. They stand in one list, from
// which a group takes the one that its options allow and benchmarks take one by name, and over all
// of which the tests of every backend run.
#pragma once

#include <memory>
#include <span>

#include "cohort/collective/communication_options.h"
#include "cohort/collective/group_member.h"
#include "cohort/collective/network/transport.h"

namespace cohort::internal {
class ServerCore;
}

namespace cohort::collective {

struct Network {
  const char* name;         // for benchmarks and the names of tests
  const char* description;  // in the log: "values travel over Gloo, unencrypted"
  // It neither encrypts nor authenticates: only where the network is declared trusted.
  bool needs_trust;
  // COLLECTIVE over the tasks of `member`. The server is this task's, and outlives the transport.
  // Errors: Unavailable (a task was lost), DeadlineExceeded (names the tasks that have not come),
  // those of the store and of GroupMember::check.
  std::unique_ptr<Transport> (*connect)(const GroupMember& member, internal::ServerCore& server);
};

// The networks that are built, the fastest first. The last one needs no trust.
std::span<const Network> networks();

// The network that a group with these options takes.
const Network& network_for(const distribute::experimental::CommunicationOptions& options);

}  // namespace cohort::collective
