// The services of a dispatcher, reached by tasks of the same host over unix sockets.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "cohort/cluster/rpc/dispatcher.h"
#include "cohort/cluster/rpc/transport_settings.h"
#include "cohort/cluster/same_host/handshake.h"
#include "cohort/cluster/same_host/server_connection.h"
#include "cohort/core/host/polling_thread.h"
#include "cohort/core/host/unique_fd.h"

namespace cohort::internal::rpc {

struct HostServerOptions {
  TransportSettings settings = {};
  bool same_process = false;      // see HandshakeService
  size_t most_connections = 256;  // each has a thread; more tasks than that call over gRPC
};

// Callers get in by a ticket of the "same_host" service, which it adds to the dispatcher, and only
// those of the same user. Thread safety: any thread.
class HostServer {
 public:
  // `dispatcher` must live longer. Errors: ResourceExhausted.
  HostServer(Dispatcher& dispatcher, const HostServerOptions& options);
  ~HostServer();

  // Ends all connections. After it no call comes. From any thread.
  void stop();

  const std::string& socket_name() const { return name_; }

 private:
  void accept();
  void take(UniqueFd connection);

  Dispatcher& dispatcher_;
  const HostServerOptions options_;
  const std::string name_;
  const std::shared_ptr<HandshakeService> handshakes_;
  const UniqueFd socket_;
  std::mutex stopping_;  // held while it stops: whoever stops it, too, waits for the end
  std::mutex mutex_;
  std::vector<std::shared_ptr<ServerConnection>> connections_;  // guarded by mutex_
  PollingThread thread_;
};

}  // namespace cohort::internal::rpc
