#include "cohort/parameter_server/runner/published_calls.h"

#include <algorithm>
#include <limits>
#include <thread>

#include "cohort/cluster/known_jobs.h"

namespace cohort::internal {
namespace {

constexpr std::chrono::milliseconds kLookAgain{2};

// The last call whose result all of these have: workers and ps tasks that are alive, or all there are.
int64_t taken_by_all(distribute::Coordination& coordination, bool only_alive) {
  int64_t least = std::numeric_limits<int64_t>::max();
  for (const distribute::ClusterTask& one : coordination.view().tasks) {
    if (one.task.job != kWorker && one.task.job != kPs) continue;
    if (only_alive && one.status != distribute::TaskStatus::kAlive) continue;
    least = std::min(least, last_taken(coordination, one.task));
  }
  return least;
}

}  // namespace

void PublishedCalls::add(distribute::Coordination& coordination, int64_t call,
                         const LoopResult& result) {
  publish(coordination, call, result);
  const std::lock_guard lock(mutex_);
  last_ = call;
  // One that is away may come back.
  const int64_t taken = std::min(taken_by_all(coordination, /*only_alive=*/false), last_ - 1);
  for (; first_kept_ <= taken; ++first_kept_) forget(coordination, first_kept_);
}

void PublishedCalls::wait_until_taken(distribute::Coordination& coordination, Deadline deadline) {
  const std::lock_guard lock(mutex_);
  if (last_ == 0) return;
  while (taken_by_all(coordination, /*only_alive=*/true) < last_ &&
         std::chrono::steady_clock::now() < deadline) {
    std::this_thread::sleep_for(kLookAgain);
  }
}

}  // namespace cohort::internal
