// The service by which the tasks of groups send each other bytes, one at each server. Each group of
// the task has a mailbox there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "cohort/cluster/rpc/service.h"
#include "cohort/collective/network/rpc_mailbox.h"
#include "cohort/collective/network/transport.h"

namespace cohort::internal {
class ServerCore;
}

namespace cohort::collective {

// Thread safety: any thread.
class RpcService final : public internal::rpc::Service {
 public:
  // The server's service, which is made at the first call. Errors: those of ServerCore::add.
  static std::shared_ptr<RpcService> of(internal::ServerCore& server);

  std::string_view name() const override { return "collective"; }
  std::span<const internal::rpc::MethodSpec> methods() const override { return kMethods; }
  void handle(size_t method, std::unique_ptr<internal::rpc::Call> call) override;
  void stop() override;

  // Errors: AlreadyExists (this task is in this generation of the group already), Cancelled (after
  // stop()).
  void add(std::shared_ptr<RpcMailbox> mailbox);
  void remove(RpcMailbox& mailbox);

 private:
  using Key = std::pair<std::string, int64_t>;  // group, generation
  // A group that this task is no longer in: a caller may learn why. Calls on their way overtake
  // each other.
  struct Ended {
    Key key;
    uint64_t session = 0;
    std::exception_ptr error;  // null: this task has left in good order
  };

  // Only tasks that train send each other numbers. Generations of the cluster fence nothing here: a
  // task that comes or goes elsewhere changes no group, and groups have generations of their own.
  static constexpr internal::rpc::MethodSpec kMethods[] = {
      {.name = "put",
       .callers = internal::rpc::Role::kWorker,
       .max_bulk_bytes = kMaxMessageBytes,
       .fenced = false,
       .max_control_bytes = 1024},
      {.name = "watch",
       .callers = internal::rpc::Role::kWorker,
       .fenced = false,
       .max_control_bytes = 1024},
  };

  // Null: this task has left that group in good order. Errors: FailedPrecondition (it was never in
  // it), what has ended it.
  std::shared_ptr<RpcMailbox> find(const RpcEnvelope& envelope) const;

  mutable std::mutex mutex_;  // guards what follows
  std::map<Key, std::shared_ptr<RpcMailbox>> mailboxes_;
  std::deque<Ended> ended_;
  bool stopped_ = false;
};

}  // namespace cohort::collective
