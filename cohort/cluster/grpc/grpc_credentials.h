// A task's credentials as gRPC takes them. For this folder's sources: includes gRPC's headers.
#pragma once

#include <grpcpp/client_context.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server_context.h>

#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "cohort/cluster/rpc/transport_settings.h"
#include "cohort/cluster/security/security.h"
#include "cohort/core/program/task_id.h"

namespace cohort::internal::rpc {

std::shared_ptr<grpc::ServerCredentials> server_credentials(const security::Security& security,
                                                            const TransportSettings& settings);

// Checks whether the server at the other end of a channel is the task that was meant. It keeps the
// reason of a failure, because gRPC itself only reports that it cannot connect.
// Thread safety: any thread.
class ServerCheck {
 public:
  // `expected` without a job: any task of the cluster.
  ServerCheck(TaskId expected, std::string address)
      : expected_(std::move(expected)), address_(std::move(address)) {}

  // Whether a server with a certificate for `uris` may be talked to.
  bool accept(const security::Security& security, const std::vector<std::string>& uris);
  // Why the last server was not the right one; empty where it was.
  std::string failure() const;

 private:
  const TaskId expected_;
  const std::string address_;
  mutable std::mutex mutex_;
  std::string failure_;
};

// Errors: FailedPrecondition (the address may not be talked to with these credentials).
std::shared_ptr<grpc::ChannelCredentials> channel_credentials(
    const std::shared_ptr<const security::Security>& security, const std::string& address,
    const std::shared_ptr<ServerCheck>& check, const TransportSettings& settings);

// The task that the caller's certificate proves; nothing where certificates are not used.
// Errors: Unauthenticated (no task's certificate, a wrong token).
std::optional<TaskId> authenticated_task(const security::Security& security,
                                         const grpc::CallbackServerContext& context);
// Adds what a caller proves with each call.
void add_token(const security::Security& security, grpc::ClientContext& context);

}  // namespace cohort::internal::rpc
