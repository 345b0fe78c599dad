#include "network_group.h"

#include <chrono>
#include <utility>

#include "cohort/cluster/address.h"
#include "cohort/cluster/server_core.h"
#include "cohort/collective/network/gloo_transport.h"
#include "cohort/collective/network/rpc_transport.h"

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
  auto transport = cohort::collective::make_rpc_transport(member, server.core());
  if (backend != "gloo") return transport;
  const std::string host = cohort::internal::parse_address(server.core().advertised_address()).host;
  return cohort::collective::make_gloo_transport(member, host, std::move(transport));
}

}  // namespace bench
