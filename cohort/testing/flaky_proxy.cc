#include "cohort/testing/flaky_proxy.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <deque>
#include <list>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "cohort/core/error.h"
#include "cohort/core/host/unique_fd.h"
#include "cohort/core/text.h"

namespace cohort::testing {
namespace {

using internal::str;
using internal::UniqueFd;
using Clock = std::chrono::steady_clock;

// What one direction may hold before its sender has to wait, as behind a real network.
constexpr size_t kMostHeldBytes = 1 << 20;

sockaddr_in loopback(int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<uint16_t>(port));
  return address;
}

int port_of(const std::string& target) {
  const std::string host = "127.0.0.1:";
  int port = 0;
  if (target.starts_with(host)) {
    const char* end = target.data() + target.size();
    const auto [stop, error] = std::from_chars(target.data() + host.size(), end, port);
    if (error == std::errc() && stop == end && port > 0 && port < 65'536) return port;
  }
  throw InvalidArgumentError(str("FlakyProxy: '", target, "' is no address 127.0.0.1:PORT"));
}

// Closes with a reset instead of an orderly end.
void reset(UniqueFd& fd) {
  const linger at_once{.l_onoff = 1, .l_linger = 0};
  ::setsockopt(fd.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
  fd.reset();
}

}  // namespace

class FlakyProxy::Impl {
 public:
  explicit Impl(const std::string& target) : target_(loopback(port_of(target))) {
    sockaddr_in own = loopback(0);
    auto* raw = reinterpret_cast<sockaddr*>(&own);
    socklen_t size = sizeof(own);
    if (!listener_.valid() || !wake_.valid() || ::bind(listener_.get(), raw, size) != 0 ||
        ::listen(listener_.get(), 128) != 0 || ::getsockname(listener_.get(), raw, &size) != 0) {
      throw ResourceExhaustedError(
          str("FlakyProxy: cannot listen on 127.0.0.1: ", internal::errno_text(errno)));
    }
    address_ = str("127.0.0.1:", ntohs(own.sin_port));
    thread_ = std::thread([this] { serve(); });
  }

  ~Impl() {
    ends_ = true;
    wake();
    thread_.join();
  }

  const std::string& address() const { return address_; }
  int num_connections() const { return num_connections_; }

  void set_delay(std::chrono::milliseconds delay) { delay_ = delay.count(); }
  void set_state(bool stalled, bool refusing, bool cut) {
    stalled_ = stalled;
    refuses_ = refusing;
    if (cut) cut_ = true;
    const uint64_t asked = ++num_asked_;
    wake();
    // Returns when the thread has done it, so that a test need not guess when.
    while (num_done_ < asked && !ends_) std::this_thread::yield();
  }

 private:
  // Bytes on their way from one socket to the other.
  class Direction {
   public:
    Direction(int from, int to) : from_(from), to_(to) {}

    bool wants_to_read() const { return !ended_ && held_bytes_ < kMostHeldBytes; }
    bool is_done() const { return ended_ && held_.empty() && closed_; }
    int from() const { return from_; }
    int to() const { return to_; }
    // When its next bytes may go on; nothing where it holds none.
    std::optional<Clock::time_point> due() const {
      if (held_.empty()) return std::nullopt;
      return held_.front().due;
    }

    // False: the connection is broken.
    bool read(std::chrono::milliseconds delay) {
      std::array<char, 16 << 10> block;
      const ssize_t count = ::read(from_, block.data(), block.size());
      if (count < 0) return errno == EAGAIN || errno == EINTR;
      if (count == 0) {
        ended_ = true;
      } else {
        held_.push_back({Clock::now() + delay, {block.data(), static_cast<size_t>(count)}});
        held_bytes_ += static_cast<size_t>(count);
      }
      return true;
    }

    bool write(Clock::time_point now) {
      while (!held_.empty() && held_.front().due <= now) {
        std::string& bytes = held_.front().bytes;
        const ssize_t count = ::send(to_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
        if (count < 0) return errno == EAGAIN || errno == EINTR;
        held_bytes_ -= static_cast<size_t>(count);
        bytes.erase(0, static_cast<size_t>(count));
        if (bytes.empty()) held_.pop_front();
      }
      if (ended_ && held_.empty() && !closed_) {
        ::shutdown(to_, SHUT_WR);
        closed_ = true;
      }
      return true;
    }

   private:
    struct Piece {
      Clock::time_point due;
      std::string bytes;
    };
    const int from_;
    const int to_;
    std::deque<Piece> held_;
    size_t held_bytes_ = 0;
    bool ended_ = false;   // the sender has sent everything
    bool closed_ = false;  // and the receiver knows
  };

  struct Connection {
    Connection(UniqueFd client_socket, UniqueFd server_socket)
        : client(std::move(client_socket)),
          server(std::move(server_socket)),
          up(client.get(), server.get()),
          down(server.get(), client.get()) {}

    UniqueFd client;
    UniqueFd server;
    Direction up;
    Direction down;
  };

  void wake() {
    const uint64_t one = 1;
    [[maybe_unused]] const ssize_t written = ::write(wake_.get(), &one, sizeof(one));
  }

  void serve() {
    while (!ends_) {
      const uint64_t asked = num_asked_;
      if (cut_.exchange(false) || refuses_) reset_all();
      num_done_ = asked;
      wait();
      uint64_t ignored;
      [[maybe_unused]] const ssize_t count = ::read(wake_.get(), &ignored, sizeof(ignored));
      accept_all();
      if (!stalled_) pass_on();
      num_connections_ = static_cast<int>(connections_.size());
    }
    reset_all();
  }

  void wait() {
    std::vector<pollfd> fds = {{wake_.get(), POLLIN, 0}, {listener_.get(), POLLIN, 0}};
    std::optional<Clock::time_point> due;
    if (!stalled_) {
      for (const Connection& connection : connections_) {
        for (const Direction* way : {&connection.up, &connection.down}) {
          if (way->wants_to_read()) fds.push_back({way->from(), POLLIN, 0});
          if (const auto next = way->due()) {
            if (*next <= Clock::now()) fds.push_back({way->to(), POLLOUT, 0});
            due = due ? std::min(*due, *next) : *next;
          }
        }
      }
    }
    int timeout = num_done_ < num_asked_ ? 0 : -1;
    if (timeout != 0 && due && *due > Clock::now()) {
      timeout = static_cast<int>(
          std::chrono::ceil<std::chrono::milliseconds>(*due - Clock::now()).count());
    }
    ::poll(fds.data(), fds.size(), timeout);
  }

  void accept_all() {
    while (true) {
      UniqueFd client(::accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
      if (!client.valid()) return;
      UniqueFd server(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
      const auto* raw = reinterpret_cast<const sockaddr*>(&target_);
      // Loopback answers at once: this does not wait.
      if (refuses_ || ::connect(server.get(), raw, sizeof(target_)) != 0) {
        reset(client);
        continue;
      }
      const int on = 1;
      for (int fd : {client.get(), server.get()}) {
        ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
        ::fcntl(fd, F_SETFL, O_NONBLOCK);
      }
      connections_.emplace_back(std::move(client), std::move(server));
    }
  }

  void pass_on() {
    const auto now = Clock::now();
    const std::chrono::milliseconds delay(delay_.load());
    for (auto connection = connections_.begin(); connection != connections_.end();) {
      bool alive = true;
      for (Direction* way : {&connection->up, &connection->down}) {
        if (alive && way->wants_to_read() && is_readable(way->from())) alive = way->read(delay);
        alive = alive && way->write(delay.count() == 0 ? Clock::now() : now);
      }
      if (!alive) {
        reset(connection->client);
        reset(connection->server);
      }
      const bool done = !alive || (connection->up.is_done() && connection->down.is_done());
      connection = done ? connections_.erase(connection) : std::next(connection);
    }
  }

  static bool is_readable(int fd) {
    pollfd state = {fd, POLLIN, 0};
    return ::poll(&state, 1, 0) == 1;
  }

  void reset_all() {
    for (Connection& connection : connections_) {
      reset(connection.client);
      reset(connection.server);
    }
    connections_.clear();
    num_connections_ = 0;
  }

  const sockaddr_in target_;
  UniqueFd listener_{::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)};
  UniqueFd wake_{::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)};
  std::string address_;
  std::atomic<int64_t> delay_{0};  // milliseconds
  std::atomic<bool> stalled_{false};
  std::atomic<bool> refuses_{false};
  std::atomic<bool> cut_{false};
  std::atomic<bool> ends_{false};
  // Requests of set_state, and how many of them the thread has seen.
  std::atomic<uint64_t> num_asked_{0};
  std::atomic<uint64_t> num_done_{0};
  std::atomic<int> num_connections_{0};
  std::list<Connection> connections_;  // the thread's
  std::thread thread_;
};

FlakyProxy::FlakyProxy(const std::string& target) : impl_(std::make_unique<Impl>(target)) {}
FlakyProxy::~FlakyProxy() = default;
const std::string& FlakyProxy::address() const { return impl_->address(); }
int FlakyProxy::num_connections() const { return impl_->num_connections(); }
void FlakyProxy::set_delay(std::chrono::milliseconds delay) { impl_->set_delay(delay); }
void FlakyProxy::stall() { impl_->set_state(true, false, false); }
void FlakyProxy::resume() { impl_->set_state(false, false, false); }
void FlakyProxy::cut() { impl_->set_state(false, false, true); }
void FlakyProxy::refuse() { impl_->set_state(false, true, true); }

}  // namespace cohort::testing
