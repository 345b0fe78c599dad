// The results of calls that other tasks of the cluster may still want of their coordinator.
#pragma once

#include <chrono>
#include <cstdint>
#include <limits>
#include <mutex>
#include <vector>

#include "cohort/cluster/coordination.h"
#include "cohort/parameter_server/runner/loop_result.h"

namespace cohort::internal {

// A task that is started again passes by the calls that have ended, one after another: results
// stay, but for the values of large ones, and the oldest of very many.
// Thread safety: any thread.
class PublishedCalls {
 public:
  using Deadline = std::chrono::steady_clock::time_point;
  // A task of a cluster may have 10,000 keys; the program has some of its own.
  static constexpr int64_t kMostKept = 4000;

  explicit PublishedCalls(int64_t most_kept = kMostKept) : most_kept_(most_kept) {}

  // Publishes the result (loop_result.h). Of earlier calls that all tasks have, values of more than
  // 128 KiB are left out from now on.
  void add(distribute::Coordination& coordination, int64_t call, const LoopResult& result);
  // Waits until the workers and ps tasks that are alive, or are about to register, have the last
  // result: who ends before takes it along. Returns at the deadline, too.
  void wait_until_taken(distribute::Coordination& coordination, Deadline deadline);
  // Whether there was one.
  bool any() const {
    const std::lock_guard lock(mutex_);
    return last_ != 0;
  }

 private:
  struct Large {
    int64_t call = 0;
    LoopResult without_value = {};
  };
  void leave_out_values(distribute::Coordination& coordination);
  void forget_oldest(distribute::Coordination& coordination);

  const int64_t most_kept_;
  mutable std::mutex mutex_;  // guards what follows
  int64_t first_kept_ = 1;
  int64_t last_ = 0;
  std::vector<Large> large_;  // which still have their values
};

// The last call whose result all workers and ps tasks that are alive have; a task whose program has
// ended has all.
// Errors: those of last_taken.
int64_t last_taken_by_all(distribute::Coordination& coordination);
// The number of a task whose program has ended.
inline constexpr int64_t kEveryCall = std::numeric_limits<int64_t>::max();

}  // namespace cohort::internal
