// Asks a running cluster for its status from outside, for a person who holds an operator's
// certificate.
//
//   StatusClient client("10.0.0.1:2222", security, 5s);
//   std::cout << membership::status_table(client.status(), {});
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "cohort/cluster/membership/status_text.h"
#include "cohort/cluster/rpc/channel.h"
#include "cohort/cluster/rpc/identity.h"
#include "cohort/cluster/security/security.h"

namespace cohort::internal {

// Thread safety: none.
class StatusClient {
 public:
  // `address` is that of any task; the coordinating task is found through it.
  // Errors: InvalidArgument (no address), FailedPrecondition (it may not be talked to with these
  // credentials).
  StatusClient(const std::string& address, std::shared_ptr<const security::Security> security,
               std::chrono::nanoseconds timeout);

  // Waits at most `timeout`. Errors: those of Channel, FailedPrecondition (of the coordinating
  // task's address). After one, the next call begins at `address` again.
  membership::ClusterStatus status();

 private:
  using Time = std::chrono::steady_clock::time_point;

  std::shared_ptr<rpc::Channel> connect(const TaskId& task, const std::string& address) const;
  void find_coordinator(Time deadline);

  const std::string address_;
  const std::shared_ptr<const security::Security> security_;
  const std::chrono::nanoseconds timeout_;
  const std::shared_ptr<const rpc::Identity> self_;
  const std::shared_ptr<rpc::Channel> any_;  // to `address`
  TaskId coordinator_;
  std::shared_ptr<rpc::Channel> channel_;  // to it; null: it is not known yet
};

}  // namespace cohort::internal
