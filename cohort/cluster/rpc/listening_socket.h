// Makes, finds and describes listening sockets.
#pragma once

#include <string>

#include "cohort/core/host/unique_fd.h"

namespace cohort::internal::rpc {

// A new TCP socket that listens at `host` and `port`, never shared with another one.
// Errors: FailedPrecondition (taken, or none of this host's addresses), Unavailable (the name is
// not known).
UniqueFd listen_at(const std::string& host, int port);

// The listening socket at `port` that systemd passed to this process (LISTEN_PID, LISTEN_FDS), its
// descriptor; -1 where there is none. `port` 0: the first one.
int passed_socket(int port);

struct SocketAddress {
  std::string host;
  int port = 0;
  bool is_loopback = false;
};
// The address at which `socket` listens.
// Errors: InvalidArgument (it is no listening socket).
SocketAddress listening_address(int socket);

// The address at the other end of a connection: "10.0.0.7:41234"; empty if it is gone already.
std::string peer_address(int connection);

// Describes the process that listens at `port`, as far as this process may see it: "process 4711
// (nginx)". Empty if it cannot tell.
std::string port_owner(int port);

// The address of this host that packets to `address` ("host:port") leave from: what tasks on other
// hosts can reach. Errors: Unavailable (the name is not known, no way there).
std::string local_host_towards(const std::string& address);

// "127.0.0.1:80", "[::1]:80".
std::string host_and_port(const std::string& host, int port);

}  // namespace cohort::internal::rpc
