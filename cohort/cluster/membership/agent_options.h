// What a MembershipAgent is made with.
#pragma once

#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cohort/cluster/membership/messages.h"
#include "cohort/cluster/membership/settings.h"
#include "cohort/cluster/membership/view.h"
#include "cohort/cluster/rpc/channel.h"
#include "cohort/core/program/task_id.h"

namespace cohort::internal::membership {

using ViewPtr = std::shared_ptr<const View>;

// What a task does when it has lost the coordination service.
enum class OnServiceLost {
  kFail,  // workers in step: nothing can go on
  kWait,  // ps tasks: their variables outlive the coordinator, for the time of a lease
};

// How a task of an elastic cluster finds the service, wherever it is.
struct ElasticAgentOptions {
  std::vector<TaskId> tasks;  // that may hold it, this one too
  // A channel to one of them. Errors: FailedPrecondition (its address is not known yet).
  std::function<std::shared_ptr<rpc::Channel>(const TaskId&)> channel_to;
  // What this task does about the service, and what makes it hold it (ElasticService).
  std::function<Standing()> standing;
  std::function<void(const View& record)> coordinate;
  // Whether this task may hold the service of a new group, if nobody else does.
  bool may_begin = true;
  std::string place = {};  // of this process (process_place())
  // Whether the process of a member has ended for certain.
  std::function<bool(const Member&)> is_dead = [](const Member&) { return false; };
};

struct AgentOptions {
  TaskId task;
  uint64_t incarnation = 0;       // of this process: random, not 0
  std::string address = {};       // where it listens, as others reach it
  std::string cluster_spec = {};  // printed; equal in all tasks
  std::vector<Section> program = {};
  // The term of the group that this process was in before, and has left; 0: none.
  int64_t term_seen = 0;
  int64_t generation_seen = 0;

  Duration start_timeout = std::chrono::minutes(10);
  OnServiceLost on_service_lost = OnServiceLost::kFail;
  Duration lease = std::chrono::minutes(1);  // kWait: beyond the time after which it is lost
  // An elastic cluster's: when the service is lost, another task takes it over.
  std::optional<ElasticAgentOptions> elastic = {};
  // The settings until the service has told its own.
  HeartbeatSettings heartbeat = kDefaultHeartbeat;
  // The pause between attempts to register: from the first to the longest, doubled each time, less
  // up to half of it by chance.
  Duration first_retry = std::chrono::milliseconds(50);
  Duration longest_retry = std::chrono::seconds(2);

  // Called with the generation in which this task acts from now on (0: none), and with the new view
  // (null if the task leaves its group). It is called under the agent's lock, before anybody who
  // waits learns of it, so it must not call the agent, nor throw.
  std::function<void(int64_t generation, const ViewPtr& view)> on_generation =
      [](int64_t, const ViewPtr&) {};
  // Called with an Unavailable for each task of the group that is lost, with the errors that other
  // tasks report, and with the error that ends this agent (the service lost, fenced, refused, the
  // group failed). One call at a time, in order; calls may come from any thread, and not after
  // stop().
  std::function<void(std::exception_ptr)> on_error = [](std::exception_ptr) {};
  // Called with each new view, which says what has happened since the last one. It is called as
  // on_error is, and before it.
  std::function<void(const ViewPtr&)> on_change = [](const ViewPtr&) {};
  std::function<void(const std::string&)> log = [](const std::string&) {};
};

}  // namespace cohort::internal::membership
