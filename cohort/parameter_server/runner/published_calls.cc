#include "cohort/parameter_server/runner/published_calls.h"

#include <algorithm>
#include <limits>
#include <thread>

#include "cohort/cluster/known_jobs.h"

namespace cohort::internal {
namespace {

constexpr std::chrono::milliseconds kLookAgain{2};
// Of a task that has not come in the whole training.
constexpr std::chrono::seconds kMostToRegister{5};

bool takes_results(const distribute::ClusterTask& one) {
  return one.task.job == kWorker || one.task.job == kPs;
}

bool is_any_awaited(distribute::Coordination& coordination) {
  for (const distribute::ClusterTask& one : coordination.view().tasks) {
    if (takes_results(one) && one.status == distribute::TaskStatus::kAwaited) return true;
  }
  return false;
}

// The last call whose result all of these have: workers and ps tasks that are alive, or all there are.
int64_t taken_by_all(distribute::Coordination& coordination, bool only_alive) {
  int64_t least = std::numeric_limits<int64_t>::max();
  for (const distribute::ClusterTask& one : coordination.view().tasks) {
    if (!takes_results(one)) continue;
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
  // Steps reach a task as soon as it answers, which may be before it has registered: a short training is
  // over by then, and nobody would wait for the task.
  const Deadline registered =
      std::min(deadline, std::chrono::steady_clock::now() + kMostToRegister);
  while (is_any_awaited(coordination) && std::chrono::steady_clock::now() < registered) {
    std::this_thread::sleep_for(kLookAgain);
  }
  while (taken_by_all(coordination, /*only_alive=*/true) < last_ &&
         std::chrono::steady_clock::now() < deadline) {
    std::this_thread::sleep_for(kLookAgain);
  }
}

}  // namespace cohort::internal
