#include "cohort/parameter_server/runner/published_calls.h"

#include <algorithm>
#include <utility>

#include "cohort/cluster/known_jobs.h"
#include "cohort/core/threads/backoff.h"

namespace cohort::internal {
namespace {

constexpr size_t kMostBytesKept = size_t{1} << 17;
constexpr std::chrono::milliseconds kLookAgain{2};
// The wait for a task that has not come in the whole training.
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

// The last call whose result all workers and ps tasks have, but for those that are gone: who comes
// back begins with the first call.
int64_t taken_by_all(distribute::Coordination& coordination, bool only_alive) {
  int64_t least = kEveryCall;
  for (const distribute::ClusterTask& one : coordination.view().tasks) {
    const bool is_awaited = one.status == distribute::TaskStatus::kAwaited && !only_alive;
    if (!takes_results(one)) continue;
    if (one.status != distribute::TaskStatus::kAlive && !is_awaited) continue;
    least = std::min(least, last_taken(coordination, one.task));
  }
  return least;
}

}  // namespace

int64_t last_taken_by_all(distribute::Coordination& coordination) {
  return taken_by_all(coordination, /*only_alive=*/true);
}

void PublishedCalls::add(distribute::Coordination& coordination, int64_t call,
                         const LoopResult& result) {
  const size_t size = publish(coordination, call, result);
  const std::lock_guard lock(mutex_);
  last_ = call;
  leave_out_values(coordination);
  if (size > kMostBytesKept) {
    large_.push_back({call,
                      {.name = result.name,
                       .generation = result.generation,
                       .is_last = result.is_last,
                       .is_left_out = true}});
  }
  forget_oldest(coordination);
}

void PublishedCalls::leave_out_values(distribute::Coordination& coordination) {
  if (large_.empty()) return;
  const int64_t taken = taken_by_all(coordination, /*only_alive=*/false);
  std::erase_if(large_, [&](const Large& one) {
    if (one.call > taken) return false;
    forget(coordination, one.call);
    publish(coordination, one.call, one.without_value);
    return true;
  });
}

void PublishedCalls::forget_oldest(distribute::Coordination& coordination) {
  if (last_ - first_kept_ < most_kept_) return;
  const int64_t first_before = std::exchange(first_kept_, last_ - most_kept_ + 1);
  set_first_kept(coordination, first_kept_);
  for (int64_t call = first_before; call < first_kept_; ++call) forget(coordination, call);
}

void PublishedCalls::wait_until_taken(distribute::Coordination& coordination, Deadline deadline) {
  const std::lock_guard lock(mutex_);
  if (last_ == 0) return;
  // Steps reach a task as soon as it answers, which may be before it has registered: a short
  // training is over by then, and nobody would wait for the task.
  const Deadline registered =
      std::min(deadline, std::chrono::steady_clock::now() + kMostToRegister);
  // The coordinator's own memory, where others write: nobody is told of a change.
  Backoff looks(kLookAgain);
  while (is_any_awaited(coordination) && looks.sleep(registered)) continue;
  while (taken_by_all(coordination, /*only_alive=*/true) < last_ && looks.sleep(deadline)) continue;
}

}  // namespace cohort::internal
