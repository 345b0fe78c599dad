#include "cohort/cluster/status_client.h"

#include <algorithm>
#include <utility>

#include "cohort/cluster/address.h"
#include "cohort/cluster/cluster_roles.h"
#include "cohort/cluster/grpc/grpc_channel.h"
#include "cohort/cluster/where_reply.h"
#include "cohort/core/error.h"
#include "cohort/core/threads/bounded_wait.h"

namespace cohort::internal {
namespace {

using security::Security;

// What Server::target() gives is an address, too.
std::string checked_address(std::string_view text) {
  constexpr std::string_view kScheme = "grpc://";
  if (text.starts_with(kScheme)) text.remove_prefix(kScheme.size());
  return to_string(parse_address(text));
}

// The certificate names the caller. Without one the caller names itself.
TaskId caller_of(const Security& security) {
  return security.mode() == Security::Mode::kTls ? security.identity().task
                                                 : TaskId{kOperatorJob, 0};
}

rpc::CallOptions until(std::chrono::steady_clock::time_point deadline) {
  const auto left = deadline - std::chrono::steady_clock::now();
  return {.timeout = std::max<std::chrono::nanoseconds>(left, std::chrono::milliseconds(1))};
}

}  // namespace

StatusClient::StatusClient(const std::string& address, std::shared_ptr<const Security> security,
                           std::chrono::nanoseconds timeout)
    : address_(checked_address(address)),
      security_(std::move(security)),
      timeout_(bounded_wait(timeout)),
      self_(std::make_shared<rpc::Identity>(caller_of(*security_), 0)),
      any_(connect({}, address_)) {}

std::shared_ptr<rpc::Channel> StatusClient::connect(const TaskId& task,
                                                    const std::string& address) const {
  return rpc::make_grpc_channel(
      {.peer = task, .address = address, .self = self_, .security = security_, .settings = {}});
}

void StatusClient::find_coordinator(Time deadline) {
  const WhereReply where =
      WhereReply::decode(any_->call("server/where", {}, until(deadline)).control);
  coordinator_ = where.coordinator;
  // The way that leads there from here, where others go another (a forwarded port).
  channel_ = where.self == where.coordinator ? any_ : connect(where.coordinator, where.address);
}

membership::ClusterStatus StatusClient::status() {
  const Time deadline = std::chrono::steady_clock::now() + timeout_;
  try {
    if (!channel_) find_coordinator(deadline);
    const rpc::Message reply = channel_->call("membership/status", {}, until(deadline));
    return {.coordinator = coordinator_,
            .address = channel_->address(),
            .time = std::chrono::system_clock::now(),
            .view = membership::View::decode(reply.control)};
  } catch (...) {
    channel_.reset();
    throw;
  }
}

}  // namespace cohort::internal
