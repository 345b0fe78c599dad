// Calls to one task over gRPC.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "cohort/cluster/rpc/channel.h"
#include "cohort/cluster/rpc/identity.h"
#include "cohort/cluster/rpc/transport_settings.h"
#include "cohort/cluster/security/security.h"

namespace cohort::internal::rpc {

struct GrpcChannelOptions {
  TaskId peer;          // without a job: any task of the cluster
  std::string address;  // "host:port", "unix:/path"
  std::shared_ptr<const Identity> self;
  std::shared_ptr<const security::Security> security;
  TransportSettings settings;
};

// Connects with the first call, and again after a loss. Calls that follow a failed connection fail
// at once until it is time to try again, a second later at most (CallOptions::wait_for_peer,
// Channel::retry_now).
std::shared_ptr<Channel> make_grpc_channel(const GrpcChannelOptions& options);

}  // namespace cohort::internal::rpc
