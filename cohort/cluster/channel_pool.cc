#include "cohort/cluster/channel_pool.h"

#include <utility>

#include "cohort/cluster/grpc/grpc_channel.h"
#include "cohort/cluster/rpc/error_detail.h"
#include "cohort/cluster/rpc/repeating_channel.h"
#include "cohort/cluster/same_host/host_channel.h"
#include "cohort/core/error.h"

namespace cohort::internal {

std::shared_ptr<rpc::Channel> ChannelPool::channel(const TaskId& task, const std::string& address) {
  std::shared_ptr<rpc::Channel> outdated;  // closed without the lock
  std::shared_ptr<rpc::Channel> current;
  {
    const std::lock_guard lock(mutex_);
    if (closed_) {  // not what a function threw that wanted it
      std::rethrow_exception(rpc::make_error(Code::kCancelled,
                                             str("no channel to ", task, ": this task has stopped"),
                                             "", {.phase = "stopped", .cause = Cause::kClosed}));
    }
    const auto found = channels_.find(task);
    if (found != channels_.end() && found->second->address() == address) return found->second;
    current = rpc::repeat_early_calls(
        rpc::prefer_same_host(rpc::make_grpc_channel({.peer = task,
                                                      .address = address,
                                                      .self = self_,
                                                      .security = security_,
                                                      .settings = settings_}),
                              self_, settings_),
        [this]() -> rpc::Clock& { return clock(); });
    outdated = std::exchange(channels_[task], current);
  }
  if (outdated) outdated->close();
  return current;
}

rpc::Clock& ChannelPool::clock() {
  std::call_once(clock_made_, [this] { clock_.emplace(); });
  return *clock_;
}

void ChannelPool::close() {
  std::map<TaskId, std::shared_ptr<rpc::Channel>> channels;
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    channels.swap(channels_);
  }
  for (const auto& [task, channel] : channels) channel->close();
}

}  // namespace cohort::internal
