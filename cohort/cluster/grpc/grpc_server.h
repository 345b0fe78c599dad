// The services of a dispatcher, reached over gRPC. Connections come from a Listener.
#pragma once

#include <memory>
#include <string>

#include "cohort/cluster/rpc/dispatcher.h"
#include "cohort/cluster/rpc/listener.h"
#include "cohort/cluster/rpc/transport_settings.h"
#include "cohort/cluster/security/security.h"

namespace cohort::internal::rpc {

struct GrpcServerOptions {
  std::shared_ptr<const security::Security> security;
  TransportSettings settings;
};

// Thread safety: any thread.
class GrpcServer {
 public:
  // Answers calls from then on. `dispatcher` must live longer.
  // Errors: FailedPrecondition (an address that is not loopback needs credentials; gRPC does not
  // start).
  GrpcServer(Dispatcher& dispatcher, std::unique_ptr<Listener> listener,
             const GrpcServerOptions& options);
  ~GrpcServer();

  const std::string& address() const;
  const Listener& listener() const;

  // Stops accepting, stops the dispatcher, gives answers under way a moment to leave, and cancels
  // the rest. Takes half a second at most; once is enough.
  void stop();

 private:
  class Impl;
  const std::unique_ptr<Impl> impl_;
};

}  // namespace cohort::internal::rpc
