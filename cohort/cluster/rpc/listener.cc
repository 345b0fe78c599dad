#include "cohort/cluster/rpc/listener.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <chrono>

#include "cohort/cluster/rpc/listening_socket.h"
#include "cohort/cluster/rpc/refused_connections.h"

namespace cohort::internal::rpc {
namespace {

// Descriptors that connections leave to the rest of the process.
constexpr int kHeadroom = 16;
constexpr std::chrono::milliseconds kRetry{100};
// The most connections that are accepted before the listener looks whether it is to stop.
constexpr int kMostAtOnce = 64;

UniqueFd open_reserve() { return UniqueFd(::open("/dev/null", O_RDONLY | O_CLOEXEC)); }

bool descriptors_left(int newest) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return true;
  // New ones get the lowest free number, so a high one says that few are left.
  return static_cast<rlim_t>(newest) + kHeadroom < limit.rlim_cur;
}

}  // namespace

Listener::Listener(const ListenerOptions& options)
    : max_connections_(options.max_connections), reserve_(open_reserve()) {
  const int passed = options.listen_fd >= 0 ? options.listen_fd : passed_socket(options.port);
  // An error names the number that the caller knows: the socket may get another.
  if (passed >= 0) listening_address(passed);
  socket_ = passed >= 0 ? UniqueFd(passed) : listen_at(options.host, options.port);
  const SocketAddress address = listening_address(socket_.get());
  if (passed >= 0) {
    ::fcntl(socket_.get(), F_SETFL, ::fcntl(socket_.get(), F_GETFL) | O_NONBLOCK);
    ::fcntl(socket_.get(), F_SETFD, FD_CLOEXEC);
  }
  port_ = address.port;
  is_loopback_ = address.is_loopback;
  address_ = host_and_port(passed >= 0 ? address.host : options.host, port_);
}

Listener::~Listener() { stop(); }

void Listener::start(std::function<void(UniqueFd connection)> take) {
  take_ = std::move(take);
  thread_.start("to accept connections with", "cohort-accept", [this] {
    pollfd watched[] = {thread_.stop(), {socket_.get(), POLLIN, 0}};
    while (thread_.poll(watched)) {
      if (watched[1].revents != 0) accept_some();
    }
  });
}

void Listener::stop() {
  thread_.end();
  socket_.reset();
}

void Listener::accept_some() {
  for (int i = 0; i < kMostAtOnce; ++i) {
    UniqueFd connection(::accept4(socket_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (connection.valid()) {
      if (has_room(connection.get())) {
        accepted_.fetch_add(1, std::memory_order_relaxed);
        new_peers_.add(connection.get(), peer_address(connection.get()));
        take_(std::move(connection));
      } else {
        refuse(std::move(connection), "limit", "there are too many");
      }
      continue;
    }
    switch (errno) {
      case EMFILE:
      case ENFILE:
        make_room();
        return;
      case EINTR:
      case ECONNABORTED:  // gone before it was accepted
        break;
      case EAGAIN:
        return;
      default:
        // The network's errors (ENETDOWN, EPROTO, ...) and a lack of memory pass; accept(2) says to
        // try again.
        thread_.pause(kRetry);
        return;
    }
  }
}

// Gives up the reserved descriptor for a moment: without a free one, a connection can be neither
// accepted nor refused.
void Listener::make_room() {
  reserve_.reset();
  UniqueFd connection(::accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC));
  if (connection.valid())
    refuse(std::move(connection), "descriptors", "descriptors have run out (ulimit -n)");
  reserve_ = open_reserve();
  if (reserve_.valid()) return;
  // Another thread was quicker. Waits for one to be closed.
  thread_.pause(kRetry);
  reserve_ = open_reserve();
}

bool Listener::has_room(int connection) {
  if (!descriptors_left(connection)) return false;
  if (open_.size() >= max_connections_) {
    std::erase_if(open_, [](const auto& open) { return socket_number(open.first) != open.second; });
    if (open_.size() >= max_connections_) return false;
  }
  open_.emplace_back(connection, socket_number(connection));
  return true;
}

void Listener::refuse(UniqueFd connection, const char* reason, const char* why) {
  refused_.fetch_add(1, std::memory_order_relaxed);
  const std::string peer = peer_address(connection.get());
  connection.reset();
  note_refused({.reason = reason, .server = address_, .peer = peer, .why = why});
}

}  // namespace cohort::internal::rpc
