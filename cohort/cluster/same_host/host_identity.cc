#include "cohort/cluster/same_host/host_identity.h"

#include <fcntl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>

#include "cohort/core/error.h"

namespace cohort::internal::rpc {
namespace {

constexpr size_t kTicketBytes = 16;

// The kernel, for as long as it runs.
std::string boot_id() {
  const UniqueFd file(::open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC));
  std::array<char, 36> text{};
  const ssize_t size = file.valid() ? ::read(file.get(), text.data(), text.size()) : -1;
  return {text.data(), size > 0 ? static_cast<size_t>(size) : 0};
}

// Abstract unix sockets are seen within one only.
std::string network_namespace() {
  std::array<char, 64> text{};
  const ssize_t size = ::readlink("/proc/self/ns/net", text.data(), text.size());
  return {text.data(), size > 0 ? static_cast<size_t>(size) : 0};
}

UniqueFd unix_socket() {
  UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.valid()) throw ResourceExhaustedError(str("no unix socket: ", std::strerror(errno)));
  return fd;
}

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

}  // namespace

std::string same_host_identity() {
  const std::string boot = boot_id();
  const std::string network = network_namespace();
  if (boot.empty() || network.empty()) return "unknown " + random_ticket();
  return str(boot, ' ', network, " user ", ::geteuid());
}

std::string random_ticket() {
  std::array<unsigned char, kTicketBytes> bytes{};
  if (::getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) {
    throw ResourceExhaustedError("the system gives no random bytes");
  }
  std::string text;
  for (const unsigned char byte : bytes) {
    text += "0123456789abcdef"[byte >> 4];
    text += "0123456789abcdef"[byte & 15];
  }
  return text;
}

UniqueFd listen_at_name(const std::string& name) {
  UniqueFd fd = unix_socket();
  const AbstractName address(name);
  if (::bind(fd.get(), address.get(), address.length) != 0 || ::listen(fd.get(), SOMAXCONN) != 0) {
    throw ResourceExhaustedError(str("cannot listen at a unix socket: ", std::strerror(errno)));
  }
  return fd;
}

UniqueFd connect_to_name(const std::string& name) {
  UniqueFd fd = unix_socket();
  const AbstractName address(name);
  if (::connect(fd.get(), address.get(), address.length) != 0) fd.reset();
  return fd;
}

bool is_of_same_user(int socket) {
  ucred peer{};
  socklen_t size = sizeof peer;
  return ::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 &&
         peer.uid == ::geteuid();
}

}  // namespace cohort::internal::rpc
