#include "cohort/cluster/rpc/listening_socket.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>

#include "cohort/core/classic_locale.h"
#include "cohort/core/error.h"
#include "cohort/core/text.h"

namespace cohort::internal::rpc {
namespace {

// Connections that wait to be accepted; the kernel cuts it to net.core.somaxconn.
constexpr int kBacklog = 1024;
// The first descriptor that systemd passes.
constexpr int kFirstPassed = 3;

using AddressList = std::unique_ptr<addrinfo, void (*)(addrinfo*)>;

AddressList resolve(const std::string& host, int port) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int error = ::getaddrinfo(host.c_str(), decimal_digits(port).c_str(), &hints, &found);
  if (error != 0) {
    const ClassicLocale classic;  // else the reason is translated
    throw UnavailableError(str("the name of host ", quoted(host), " is not known (",
                               ::gai_strerror(error), "); the system's resolver was asked"));
  }
  return {found, ::freeaddrinfo};
}

[[noreturn]] void cannot_listen(int error, const std::string& host, int port) {
  const std::string where = host_and_port(host, port);
  if (error == EADDRINUSE) {
    const std::string owner = port_owner(port);
    throw FailedPreconditionError(str("cannot listen at ", where, ": the port is taken",
                                      owner.empty() ? "" : " by ", owner,
                                      ". End whoever has it, or give this task another port"));
  }
  if (error == EADDRNOTAVAIL) {
    throw FailedPreconditionError(str(
        "cannot listen at ", where, ": it is no address of this host. Run the task on the host ",
        "that its cluster spec names, or give the address to bind to (bind_address)"));
  }
  throw FailedPreconditionError(str("cannot listen at ", where, ": ", errno_text(error)));
}

SocketAddress describe(const sockaddr_storage& address) {
  char text[INET6_ADDRSTRLEN] = "";
  if (address.ss_family == AF_INET6) {
    const auto& in6 = reinterpret_cast<const sockaddr_in6&>(address);
    ::inet_ntop(AF_INET6, &in6.sin6_addr, text, sizeof text);
    return {text, ntohs(in6.sin6_port), IN6_IS_ADDR_LOOPBACK(&in6.sin6_addr) != 0};
  }
  const auto& in = reinterpret_cast<const sockaddr_in&>(address);
  ::inet_ntop(AF_INET, &in.sin_addr, text, sizeof text);
  return {text, ntohs(in.sin_port), (ntohl(in.sin_addr.s_addr) >> 24) == 127};
}

// The number of the socket that listens at `port`, as /proc/net/tcp and tcp6 have it.
std::string listening_inode(int port) {
  const std::string its_port = ":" + upper(hex_digits(static_cast<uint64_t>(port), 4));
  for (const char* table : {"/proc/net/tcp", "/proc/net/tcp6"}) {
    std::ifstream lines(table);
    std::string line;
    std::getline(lines, line);  // the head
    while (std::getline(lines, line)) {
      // number, local, remote, state, queues, timer, retries, uid, timeout, inode
      const std::vector<std::string_view> words = split_words(line);
      if (words.size() < 10 || words[3] != "0A") continue;
      if (words[1].ends_with(its_port)) return std::string(words[9]);
    }
  }
  return "";
}

bool has_socket(const std::filesystem::path& process, const std::string& link) {
  std::error_code ignored;
  for (const auto& fd : std::filesystem::directory_iterator(process / "fd", ignored)) {
    if (std::filesystem::read_symlink(fd.path(), ignored) == link) return true;
  }
  return false;
}

}  // namespace

UniqueFd listen_at(const std::string& host, int port) {
  const AddressList addresses = resolve(host, port);
  int error = 0;
  for (const addrinfo* address = addresses.get(); address != nullptr; address = address->ai_next) {
    UniqueFd socket(::socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    const int on = 1;
    // A port in TIME_WAIT is free. Never SO_REUSEPORT, with which two servers share a port.
    if (socket.valid() &&
        ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0 &&
        ::setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) == 0 &&
        ::bind(socket.get(), address->ai_addr, address->ai_addrlen) == 0 &&
        ::listen(socket.get(), kBacklog) == 0) {
      return socket;
    }
    // A host may have a name for IPv6 without having IPv6; the taken port is what counts.
    if (error == 0 || errno == EADDRINUSE) error = errno;
  }
  cannot_listen(error, host, port);
}

int passed_socket(int port) {
  const char* const process = std::getenv("LISTEN_PID");
  const char* const count = std::getenv("LISTEN_FDS");
  if (process == nullptr || count == nullptr) return -1;
  if (parse_number<int32_t>(process) != ::getpid()) return -1;
  const int passed = parse_number<int32_t>(count).value_or(0);
  for (int fd = kFirstPassed; fd < kFirstPassed + passed; ++fd) {
    try {
      const SocketAddress address = listening_address(fd);
      if (port == 0 || address.port == port) return fd;
    } catch (const InvalidArgumentError&) {
      continue;  // systemd passes sockets of other kinds, too
    }
  }
  return -1;
}

SocketAddress listening_address(int socket) {
  int listens = 0;
  socklen_t size = sizeof listens;
  sockaddr_storage address{};
  socklen_t address_size = sizeof address;
  if (::getsockopt(socket, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) != 0 || listens == 0 ||
      ::getsockname(socket, reinterpret_cast<sockaddr*>(&address), &address_size) != 0 ||
      (address.ss_family != AF_INET && address.ss_family != AF_INET6)) {
    throw InvalidArgumentError(str("descriptor ", socket, " is no listening TCP socket"));
  }
  return describe(address);
}

std::string peer_address(int connection) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  if (::getpeername(connection, reinterpret_cast<sockaddr*>(&address), &size) != 0) return "";
  if (address.ss_family != AF_INET && address.ss_family != AF_INET6) return "";
  const SocketAddress peer = describe(address);
  return host_and_port(peer.host, peer.port);
}

std::string port_owner(int port) {
  const std::string inode = listening_inode(port);
  if (inode.empty()) return "";
  const std::string link = "socket:[" + inode + "]";
  std::error_code ignored;
  for (const auto& process : std::filesystem::directory_iterator("/proc", ignored)) {
    const std::string pid = process.path().filename();
    if (pid.find_first_not_of("0123456789") != std::string::npos) continue;
    if (!has_socket(process.path(), link)) continue;
    std::string name;
    std::getline(std::ifstream(process.path() / "comm"), name);
    return str("process ", pid, " (", name, ")",
               pid == decimal_digits(::getpid()) ? ", this one" : "");
  }
  return "another user's process";
}

std::string local_host_towards(const std::string& address) {
  const size_t colon = address.rfind(':');
  std::string host = address.substr(0, colon);
  if (host.starts_with('[')) host = host.substr(1, host.size() - 2);
  const int port = parse_number<int32_t>(address.substr(colon + 1)).value_or(0);
  const AddressList addresses = resolve(host, port);
  for (const addrinfo* to = addresses.get(); to != nullptr; to = to->ai_next) {
    // Connecting a datagram socket chooses a way and sends nothing.
    const UniqueFd socket(::socket(to->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    sockaddr_storage from{};
    socklen_t size = sizeof from;
    if (socket.valid() && ::connect(socket.get(), to->ai_addr, to->ai_addrlen) == 0 &&
        ::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&from), &size) == 0) {
      return describe(from).host;
    }
  }
  throw UnavailableError(str("no way from this host to ", address, ": ", errno_text(errno)));
}

std::string host_and_port(const std::string& host, int port) {
  const bool is_ipv6 = host.find(':') != std::string::npos;
  return is_ipv6 ? str("[", host, "]:", port) : str(host, ":", port);
}

}  // namespace cohort::internal::rpc
