// How a step runs.
#pragma once

#include <chrono>
#include <optional>

#include "cohort/distribute/core/step_graphs.h"

namespace cohort::distribute {

struct RunOptions {
  // False: the replicas run one after another on their threads (they still meet in merge_call and
  // all_reduce); for step functions that are not thread-safe.
  bool concurrent = true;
  // How long a replica waits for another in a collective call, and how long `run` waits for the
  // last replica after the first has ended. 0: the strategy's default (10 minutes). If the last
  // replica does not return in time, `run` throws, and the strategy refuses further steps until it
  // has returned; until then the step function and everything it refers to must stay alive.
  std::chrono::milliseconds timeout{0};
  // The graphs into which the step is recorded, and from which it is replayed: see StepGraphs. The
  // tensors of a result are copies then. Missing: the step runs as it is.
  std::optional<StepGraphs> capture = std::nullopt;
};

}  // namespace cohort::distribute
