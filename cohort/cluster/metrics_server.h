// Answers GET /metrics over plain HTTP: as much of HTTP as Prometheus needs, and no more.
//
//   MetricsServer server(rpc::listen_at("127.0.0.1", 9100), [] { return "up 1\n"; });
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "cohort/core/host/polling_thread.h"
#include "cohort/core/host/unique_fd.h"

namespace cohort::internal {

struct MetricsLimits {
  size_t max_connections = 16;  // further ones wait to be accepted
  size_t max_request_bytes = 8 << 10;
  // For a connection, from its first byte to its last.
  std::chrono::milliseconds timeout{5000};
};

// One thread serves all connections; each gets one answer and is closed. Callers need not prove who
// they are: the server answers whoever can connect.
// Thread safety: any thread.
class MetricsServer {
 public:
  // `listener` is a listening socket. `text` is called on the server's thread, for each request; if
  // it throws, the answer is 500.
  // Errors: ResourceExhausted, InvalidArgument (no listening socket).
  MetricsServer(UniqueFd listener, std::function<std::string()> text,
                const MetricsLimits& limits = {});
  ~MetricsServer();
  MetricsServer(const MetricsServer&) = delete;
  MetricsServer& operator=(const MetricsServer&) = delete;

  // "127.0.0.1:9100".
  const std::string& address() const { return address_; }
  // Closes all connections and the port. Calls after the first do nothing.
  void stop();

 private:
  class Connection;
  using Time = std::chrono::steady_clock::time_point;

  void run();
  void accept_some(Time now);
  int milliseconds_to_next(Time now) const;

  const std::function<std::string()> text_;
  const MetricsLimits limits_;
  UniqueFd listener_;
  std::string address_;
  std::vector<std::unique_ptr<Connection>> connections_;  // the thread's
  Time accept_at_{};                                      // not before: the last attempt failed
  std::mutex stop_mutex_;
  PollingThread thread_;
};

}  // namespace cohort::internal
