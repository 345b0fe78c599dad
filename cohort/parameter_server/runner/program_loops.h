// What the calls of fit, evaluate and predict of one program have in common.
#pragma once

#include <atomic>

#include "cohort/parameter_server/closures/worker_side.h"
#include "cohort/parameter_server/cluster/ps_cluster.h"
#include "cohort/parameter_server/coordinator/leader_side.h"
#include "cohort/parameter_server/runner/loop_table.h"
#include "cohort/parameter_server/runner/published_calls.h"

namespace cohort::internal {

// A part of the strategy, as those to which it refers.
struct ProgramLoops {
  PsCluster& cluster;
  const WorkerSide& workers;
  LeaderSide& leader;
  LoopTable table = {};  // what the calls have declared
  PublishedCalls published = PublishedCalls();
  // Whether no coordinator will let this task go, so that its end need not wait for that.
  std::atomic<bool> is_left_alone{false};
  // Whether the coordinator knows what is about to end this task's program.
  std::atomic<bool> is_failure_known{false};
};

}  // namespace cohort::internal
