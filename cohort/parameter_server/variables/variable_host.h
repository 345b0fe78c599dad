// What the variables on ps tasks share with one another: the stores, each task's step, who writes
// their checkpoints, and where shards go that have ended.
#pragma once

#include <memory>
#include <utility>

#include "cohort/core/program/per_task.h"
#include "cohort/distribute/core/strategy_core.h"
#include "cohort/parameter_server/cluster/ps_cluster.h"
#include "cohort/parameter_server/variables/released_shards.h"
#include "cohort/parameter_server/variables/task_step.h"
#include "cohort/train/objects/remote_values.h"

namespace cohort::internal {

// A part of the strategy, which outlives its variables.
// Thread safety: any thread.
class VariableHost {
 public:
  // `released`: a coordinator's; null elsewhere.
  VariableHost(const StrategyCore& strategy, PsCluster& cluster,
               std::shared_ptr<ReleasedShards> released)
      : strategy_(strategy),
        cluster_(cluster),
        steps_([] { return std::make_unique<TaskStep>(); }),
        released_(std::move(released)) {}

  PsCluster& cluster() const { return cluster_; }
  int num_local_replicas() const { return strategy_.num_local_replicas(); }
  TaskStep& step() const { return steps_.get(); }
  // The store as the calling thread's task sees it, whose own pushes have been applied. Errors:
  // those of a push of the closure that runs.
  const StoreClient& store() const {
    step().settle();
    return cluster_.store();
  }

  const std::shared_ptr<train::RemoteKeeper>& part_keeper() const { return part_keeper_; }
  // Before the first variable is made.
  void set_part_keeper(std::shared_ptr<train::RemoteKeeper> keeper) {
    part_keeper_ = std::move(keeper);
  }

  // The shards of a variable that has ended. At the coordinator ps tasks free them when nothing
  // uses them any more, elsewhere nothing happens: what a worker's program lets go of others may
  // use. Does not wait.
  void release(ReleasedShards::Shards shards) {
    if (released_ != nullptr && cluster_.generation() != 0) released_->add(std::move(shards));
  }
  void stop_releases() noexcept {
    if (released_ != nullptr) released_->stop();
  }

 private:
  const StrategyCore& strategy_;
  PsCluster& cluster_;
  PerTask<TaskStep> steps_;
  std::shared_ptr<train::RemoteKeeper> part_keeper_;
  const std::shared_ptr<ReleasedShards> released_;
};

}  // namespace cohort::internal
