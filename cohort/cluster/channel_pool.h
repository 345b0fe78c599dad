// The channels of one task to the others, one for each, made when they are first asked for.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "cohort/cluster/rpc/channel.h"
#include "cohort/cluster/rpc/identity.h"
#include "cohort/cluster/rpc/system_clock.h"
#include "cohort/cluster/rpc/transport_settings.h"
#include "cohort/cluster/security/security.h"
#include "cohort/core/program/task_id.h"

namespace cohort::internal {

// Thread safety: any thread.
class ChannelPool {
 public:
  ChannelPool(std::shared_ptr<const rpc::Identity> self,
              std::shared_ptr<const security::Security> security,
              const rpc::TransportSettings& settings)
      : self_(std::move(self)), security_(std::move(security)), settings_(settings) {}
  ~ChannelPool() { close(); }

  // The channel to `task`, which listens at `address`. A channel to another address of the task is
  // closed. The channel repeats calls that come before the task knows of their generation.
  // Errors: FailedPrecondition (the address may not be talked to with these credentials), Cancelled
  // (after close()).
  std::shared_ptr<rpc::Channel> channel(const TaskId& task, const std::string& address);
  // Closes all channels.
  void close();

 private:
  rpc::Clock& clock();

  const std::shared_ptr<const rpc::Identity> self_;
  const std::shared_ptr<const security::Security> security_;
  const rpc::TransportSettings settings_;
  std::mutex mutex_;
  std::map<TaskId, std::shared_ptr<rpc::Channel>> channels_;
  bool closed_ = false;
  std::once_flag clock_made_;
  std::optional<rpc::SystemClock> clock_;  // few pools need one: it has a thread
};

}  // namespace cohort::internal
