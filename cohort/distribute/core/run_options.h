// How a step runs.
#pragma once

#include <chrono>

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
};

}  // namespace cohort::distribute
