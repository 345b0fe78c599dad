#include "cohort/cluster/launch/free_ports.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "cohort/core/error.h"
#include "cohort/core/host/unique_fd.h"
#include "cohort/core/text.h"

namespace cohort::internal {

FreePorts::~FreePorts() { release(); }

FreePorts::FreePorts(FreePorts&& other) noexcept
    : ports_(std::exchange(other.ports_, {})), sockets_(std::exchange(other.sockets_, {})) {}

FreePorts& FreePorts::operator=(FreePorts&& other) noexcept {
  std::swap(ports_, other.ports_);
  std::swap(sockets_, other.sockets_);
  return *this;
}

void FreePorts::release() {
  for (int socket : sockets_) ::close(socket);
  sockets_.clear();
}

FreePorts pick_free_ports(int count) {
  if (count < 0) {
    throw InvalidArgumentError(str("cannot pick ", count, " ports"));
  }
  FreePorts ports;
  for (int i = 0; i < count; ++i) {
    const int socket = UniqueFd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)).release();
    if (socket >= 0) ports.sockets_.push_back(socket);
    const int on = 1;
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    auto* raw = reinterpret_cast<sockaddr*>(&address);
    if (socket < 0 || ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) != 0 ||
        ::bind(socket, raw, size) != 0 || ::getsockname(socket, raw, &size) != 0) {
      throw ResourceExhaustedError(str("cannot bind port number ", i + 1, " of ", count,
                                       " on 127.0.0.1: ", errno_text(errno)));
    }
    ports.ports_.push_back(ntohs(address.sin_port));
  }
  return ports;
}

}  // namespace cohort::internal
