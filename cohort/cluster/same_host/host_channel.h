// Calls to a task over a unix socket where it is on this host, else over another channel.
#pragma once

#include <memory>

#include "cohort/cluster/rpc/channel.h"
#include "cohort/cluster/rpc/identity.h"
#include "cohort/cluster/rpc/transport_settings.h"

namespace cohort::internal::rpc {

// Calls with CallOptions::same_host take the short way once there is one and the peer has accepted
// it: the first of them makes a handshake over `channel`, and goes over `channel` itself, as all
// others do. After a loss calls go over `channel` until a new connection stands.
std::shared_ptr<Channel> prefer_same_host(std::shared_ptr<Channel> channel,
                                          std::shared_ptr<const Identity> self,
                                          const TransportSettings& settings);

}  // namespace cohort::internal::rpc
