#include "cohort/distribute/preemption/preemption_checkpoint_handler.h"

#include <algorithm>

#include "cohort/cluster/server.h"
#include "cohort/core/durations.h"
#include "cohort/core/error.h"
#include "cohort/core/program/process.h"
#include "cohort/distribute/preemption/preemption_handler_impl.h"
#include "cohort/distribute/strategies/multi_worker_strategy.h"
#include "cohort/distribute/tasks/task_server.h"

namespace cohort::distribute::experimental {
namespace {

using internal::str;

bool trains(const TaskId& task) { return task.job == "chief" || task.job == "worker"; }

// The workers of the server's cluster, and the name under which this handler and theirs agree.
internal::StopGroup group_of(Server& server) {
  internal::StopGroup group{.cluster = &server.coordination()};
  const ClusterView view = group.cluster->wait_for_start();
  for (const ClusterTask& one : view.tasks) {
    if (trains(one.task)) group.tasks.push_back(one.task);
  }
  std::sort(group.tasks.begin(), group.tasks.end());  // chief first
  const auto self = std::find(group.tasks.begin(), group.tasks.end(), server.task());
  if (self == group.tasks.end() || group.tasks.size() == 1) return {};
  group.self = static_cast<size_t>(self - group.tasks.begin());
  const std::string handlers = str("preemption/", view.generation);
  // The tasks make their handlers in the same order.
  const int64_t number = group.cluster->add(str(handlers, "/made by ", group.self), 1);
  group.name = str(handlers, "/", number);
  return group;
}

internal::StopGroup group_of(const cluster_resolver::ClusterResolver& resolver, Server* server) {
  if (server != nullptr) return group_of(*server);
  if (internal::worker_place(resolver).workers.size() <= 1) return {};
  const ServerOptions options;
  return group_of(internal::TaskServer::find_or_start(resolver, options)->server());
}

train::CheckpointManager manager_for(const train::Checkpoint& checkpoint,
                                     const PreemptionCheckpointOptions& options) {
  if (options.checkpoint_dir.empty()) {
    throw InvalidArgumentError(
        "PreemptionCheckpointHandler needs a checkpoint_dir when it gets a Checkpoint and not a "
        "CheckpointManager");
  }
  return {checkpoint, options.checkpoint_dir, {.max_to_keep = 1}};
}

const train::CheckpointManager& checked(const train::CheckpointManager& manager,
                                        const PreemptionCheckpointOptions& options) {
  if (options.checkpoint_dir.empty() || options.checkpoint_dir == manager.directory()) {
    return manager;
  }
  throw InvalidArgumentError(str("PreemptionCheckpointHandler got checkpoint_dir '",
                                 options.checkpoint_dir, "' and a CheckpointManager of '",
                                 manager.directory(), "'; leave checkpoint_dir out"));
}

internal::HomePtr<internal::PreemptionHandlerImpl> make_impl(
    const cluster_resolver::ClusterResolver& resolver, const train::CheckpointManager& manager,
    PreemptionCheckpointOptions& options) {
  TerminationConfig& config = options.termination_config;
  internal::check_not_negative("TerminationConfig: grace_period", config.grace_period);
  return internal::HomePtr<internal::PreemptionHandlerImpl>(new internal::PreemptionHandlerImpl(
      group_of(resolver, options.server), manager, std::move(config)));
}

}  // namespace

PreemptionCheckpointHandler::PreemptionCheckpointHandler(
    const cluster_resolver::ClusterResolver& resolver, const train::Checkpoint& checkpoint,
    PreemptionCheckpointOptions options)
    : impl_(make_impl(resolver, manager_for(checkpoint, options), options)) {}

PreemptionCheckpointHandler::PreemptionCheckpointHandler(
    const cluster_resolver::ClusterResolver& resolver, const train::CheckpointManager& manager,
    PreemptionCheckpointOptions options)
    : impl_(make_impl(resolver, checked(manager, options), options)) {}

PreemptionCheckpointHandler::~PreemptionCheckpointHandler() = default;

void PreemptionCheckpointHandler::run_call(FunctionRef<void()> call) { impl_->run(call); }

void PreemptionCheckpointHandler::save_checkpoint_if_preempted() { impl_->end_step(); }

int64_t PreemptionCheckpointHandler::total_run_calls() const { return impl_->total_run_calls(); }

}  // namespace cohort::distribute::experimental
