#include "network_group.h"

#include <chrono>

#include "cohort/cluster/server_core.h"
#include "cohort/collective/network/networks.h"
#include "cohort/core/text.h"

namespace bench {

using cohort::collective::GroupMember;
using cohort::distribute::Server;

GroupMember member_in(Server& server) {
  GroupMember member{.store = cohort::collective::make_cluster_store(server.coordination()),
                     .deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60),
                     .slow_after = std::chrono::hours(24)};
  for (const auto& task : server.coordination().wait_for_start().tasks) {
    if (task.task == server.task()) member.rank = static_cast<int>(member.tasks.size());
    member.tasks.push_back(task.task);
  }
  return member;
}

std::unique_ptr<cohort::collective::Transport> connect_transport(const std::string& backend,
                                                                 const GroupMember& member,
                                                                 Server& server) {
  for (const cohort::collective::Network& network : cohort::collective::networks()) {
    if (cohort::internal::lower(network.name) == backend) {
      return network.connect(member, server.core());
    }
  }
  throw cohort::InvalidArgumentError("there is no network '" + backend + "' in this build");
}

}  // namespace bench
