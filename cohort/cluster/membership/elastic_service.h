// The coordination service of an elastic cluster, at one of its tasks: each has one of these, and
// one of them at a time holds the service itself. When the task that holds it is lost, another one
// takes over (MembershipAgent says when).
//
//   auto service = std::make_shared<ElasticService>(clock, {.self = {"worker", 1}, .tasks = all,
//                                                           .channel_to = ..., .options = ...});
//   server.add(service);
//   service->coordinate(record);     // the agent's word
//
// A service whose group has not started, or is not agreed on, asks all tasks whether there is
// another one, and gives way to the one that goes before.
#pragma once

#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "cohort/cluster/membership/coordination_options.h"
#include "cohort/cluster/membership/messages.h"
#include "cohort/cluster/rpc/channel.h"
#include "cohort/cluster/rpc/clock.h"
#include "cohort/cluster/rpc/service.h"

namespace cohort::internal::membership {

class ElasticServiceCore;

struct ElasticServiceOptions {
  TaskId self;
  std::vector<TaskId> tasks;  // that may hold the service, this one too
  // A channel to one of them. Errors: FailedPrecondition (its address is not known yet).
  std::function<std::shared_ptr<rpc::Channel>(const TaskId&)> channel_to;
  // Makes what a service of this task is made of; ElasticRoster::record is set then.
  std::function<CoordinationOptions()> options;
  std::function<void(const std::string&)> log = [](const std::string&) {};
};

// Thread safety: any thread.
class ElasticService final : public rpc::Service {
 public:
  ElasticService(rpc::Clock& clock, ElasticServiceOptions options);
  ~ElasticService() override;

  std::string_view name() const override { return "membership"; }
  std::span<const rpc::MethodSpec> methods() const override;
  void handle(size_t method, std::unique_ptr<rpc::Call> call) override;
  void stop() override;

  // Learns from then on what this task's agent is doing (MembershipAgent::standing_source).
  void follow(std::function<Standing()> standing);
  // Holds the service from now on, for the group of `record` (generation 0: for a new one). Does
  // nothing if it holds it already.
  void coordinate(const View& record);
  // Nothing where another task holds the service.
  std::optional<View> status() const;
  Standing standing() const;
  int64_t stale_refused() const;

 private:
  std::shared_ptr<ElasticServiceCore> core_;
};

}  // namespace cohort::internal::membership
