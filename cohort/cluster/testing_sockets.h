// For tests: free ports of this host.
#pragma once

#include <string>
#include <vector>

#include "cohort/cluster/rpc/listening_socket.h"
#include "cohort/core/host/unique_fd.h"

namespace cohort::distribute {

// Listening sockets at free ports of loopback, which servers take over: no race for a port.
struct Sockets {
  explicit Sockets(int count) {
    for (int i = 0; i < count; ++i) {
      sockets.push_back(internal::rpc::listen_at("127.0.0.1", 0));
      addresses.push_back(
          "127.0.0.1:" +
          std::to_string(internal::rpc::listening_address(sockets.back().get()).port));
    }
  }
  std::vector<internal::UniqueFd> sockets;
  std::vector<std::string> addresses;
};

}  // namespace cohort::distribute
