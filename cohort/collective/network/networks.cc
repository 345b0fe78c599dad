#include "cohort/collective/network/networks.h"

#include <string>
#include <vector>

#include "cohort/cluster/address.h"
#include "cohort/cluster/server_core.h"
#include "cohort/collective/network/gloo_transport.h"
#include "cohort/collective/network/rpc_transport.h"

namespace cohort::collective {
namespace {

// Gloo listens where the task's server does.
std::unique_ptr<Transport> connect_gloo(const GroupMember& member, internal::ServerCore& server) {
  const std::string host = internal::parse_address(server.advertised_address()).host;
  return make_gloo_transport(member, host, make_rpc_transport(member, server));
}

std::vector<Network> built_networks() {
  std::vector<Network> built;
  if (gloo_is_built()) built.push_back({"Gloo", "Gloo, unencrypted", true, connect_gloo});
  built.push_back({"Calls", "the servers' calls", false, make_rpc_transport});
  return built;
}

}  // namespace

std::span<const Network> networks() {
  static const std::vector<Network> built = built_networks();
  return built;
}

const Network& network_for(const distribute::experimental::CommunicationOptions& options) {
  for (const Network& network : networks()) {
    if (options.trusted_network || !network.needs_trust) return network;
  }
  return networks().back();
}

}  // namespace cohort::collective
