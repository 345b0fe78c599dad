// The results of calls that other tasks of the cluster may still want of their coordinator.
#pragma once

#include <chrono>
#include <cstdint>
#include <mutex>

#include "cohort/cluster/coordination.h"
#include "cohort/parameter_server/runner/loop_result.h"

namespace cohort::internal {

// Thread safety: any thread.
class PublishedCalls {
 public:
  using Deadline = std::chrono::steady_clock::time_point;

  // Publishes the result (loop_result.h), and removes those that all tasks have.
  void add(distribute::Coordination& coordination, int64_t call, const LoopResult& result);
  // Waits until the workers and ps tasks that are alive, or are about to register, have the last result:
  // who ends before takes it along. Returns at the deadline, too.
  void wait_until_taken(distribute::Coordination& coordination, Deadline deadline);

 private:
  std::mutex mutex_;  // guards what follows
  int64_t first_kept_ = 1;
  int64_t last_ = 0;
};

}  // namespace cohort::internal
