// A listening socket and the thread that takes connections from it. gRPC has a listener of its own;
// the one of 1.51 shares its port with any other process and stops for ever once descriptors have
// run out.
//
//   Listener listener({.host = "127.0.0.1", .port = 0});
//   listener.start([](UniqueFd connection) { ... });
//   listener.address();   // "127.0.0.1:41297"
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "cohort/cluster/rpc/new_peers.h"
#include "cohort/core/host/polling_thread.h"
#include "cohort/core/host/unique_fd.h"

namespace cohort::internal::rpc {

struct ListenerOptions {
  std::string host = "127.0.0.1";
  int port = 0;  // 0: any that is free
  // A socket that listens already, inherited from whoever started this process; it wins over host
  // and port, and is owned from then on. -1: one that systemd passed for this port, if any
  // (LISTEN_FDS), else a new one.
  int listen_fd = -1;
  size_t max_connections = 4096;
};

// Thread safety: any thread.
class Listener {
 public:
  // Binds and listens; nobody is accepted before start().
  // Errors: FailedPrecondition (the port is taken: names who has it where that can be seen; the
  // address is none of this host's), InvalidArgument (`listen_fd` is no listening socket),
  // Unavailable (the host's name is not known).
  explicit Listener(const ListenerOptions& options);
  ~Listener();
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  // "host:port", with the port that was chosen.
  const std::string& address() const { return address_; }
  int port() const { return port_; }
  bool is_loopback() const { return is_loopback_; }

  // `take` gets each connection, non-blocking, on the listener's thread. Errors: ResourceExhausted
  // (no thread).
  void start(std::function<void(UniqueFd connection)> take);
  // Closes the socket; `take` is not called afterwards.
  void stop();

  size_t accepted() const { return accepted_.load(std::memory_order_relaxed); }
  // Closed at once: above max_connections, or too few descriptors left.
  size_t refused() const { return refused_.load(std::memory_order_relaxed); }
  // The peers whose connections were taken and have brought no call yet, as far as the code that
  // takes them says so.
  NewPeers& new_peers() { return new_peers_; }

 private:
  void accept_some();
  void make_room();
  bool has_room(int connection);
  void refuse(UniqueFd connection, const char* reason, const char* why);

  const size_t max_connections_;
  UniqueFd socket_;
  UniqueFd reserve_;  // given up to accept and refuse a connection when descriptors have run out
  std::string address_;
  int port_ = 0;
  bool is_loopback_ = false;
  std::function<void(UniqueFd)> take_;
  // The descriptors and socket numbers of connections that were open at the last look. The code
  // that took them closes them without telling the listener.
  std::vector<std::pair<int, uint64_t>> open_;
  NewPeers new_peers_;
  std::atomic<size_t> accepted_{0};
  std::atomic<size_t> refused_{0};
  PollingThread thread_;
};

}  // namespace cohort::internal::rpc
