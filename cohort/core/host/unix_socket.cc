#include "cohort/core/host/unix_socket.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <optional>

#include "cohort/core/error.h"
#include "cohort/core/text.h"

namespace cohort::internal {
namespace {

struct AbstractName {
  explicit AbstractName(const std::string& name) {
    address.sun_family = AF_UNIX;
    // The zero byte before the name makes it abstract.
    const size_t size = std::min(name.size(), sizeof address.sun_path - 1);
    std::memcpy(address.sun_path + 1, name.data(), size);
    length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + size);
  }
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&address); }

  sockaddr_un address{};
  socklen_t length = 0;
};

std::optional<ucred> peer_of(int socket) {
  ucred peer{};
  socklen_t size = sizeof peer;
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) return std::nullopt;
  return peer;
}

}  // namespace

UniqueFd unix_socket() {
  UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.valid()) throw ResourceExhaustedError(str("no unix socket: ", errno_text(errno)));
  return fd;
}

UniqueFd listen_at_name(const std::string& name) {
  UniqueFd fd = unix_socket();
  const AbstractName address(name);
  if (::bind(fd.get(), address.get(), address.length) != 0 || ::listen(fd.get(), SOMAXCONN) != 0) {
    throw ResourceExhaustedError(str("cannot listen at a unix socket: ", errno_text(errno)));
  }
  return fd;
}

Connected connect_to_name(const UniqueFd& socket, const std::string& name) {
  const AbstractName address(name);
  while (::connect(socket.get(), address.get(), address.length) != 0) {
    if (errno == ECONNREFUSED || errno == ENOENT) return Connected::kNobodyListens;
    if (errno == EAGAIN) return Connected::kTooManyWait;
    if (errno != EINTR) {
      throw ResourceExhaustedError(str("cannot connect to a unix socket: ", errno_text(errno)));
    }
  }
  return Connected::kYes;
}

bool is_of_same_user(int socket) {
  const std::optional<ucred> peer = peer_of(socket);
  return peer && peer->uid == ::geteuid();
}

int64_t process_at_other_end(int socket) {
  const std::optional<ucred> peer = peer_of(socket);
  return peer ? peer->pid : 0;
}

}  // namespace cohort::internal
