// Work of input pipelines on the thread pool.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "cohort/core/function_ref.h"

namespace cohort::internal {

// How many threads input pipelines share: one a core, and at least two.
int num_pipeline_threads();

// Pieces of work that the pool does early. Whoever needs one that nobody has begun does it himself,
// so that work which waits for other work never waits for a free thread.
// Thread safety: the functions are called by one thread at a time; the work runs on any, with grad
// mode off.
class WorkGroup {
 public:
  class Task;
  using TaskPtr = std::shared_ptr<Task>;

  WorkGroup();
  // As cancel().
  ~WorkGroup();
  WorkGroup(const WorkGroup&) = delete;
  WorkGroup& operator=(const WorkGroup&) = delete;

  // `work` must not throw.
  TaskPtr add(std::function<void()> work);
  bool is_done(const TaskPtr& task) const;
  // Returns when the task is done. No deadline: how long it takes is the user's business.
  void finish(const TaskPtr& task);
  // Nobody needs the task: it is not begun any more; returns when it is not running.
  void drop(const TaskPtr& task);
  // Returns when at least one of the tasks, which must not be none, is done; begins one itself
  // where nobody else has begun any.
  void finish_any(std::span<const TaskPtr> tasks);
  // Drops what nobody has begun, and waits for the rest.
  void cancel();

 private:
  struct State;
  std::shared_ptr<State> state_;
};

// Calls body(i) for all i in [0, count), up to `calls` of them at once, the caller's thread among
// those that call. Errors: what the call of the lowest i that failed threw, after all have ended.
void parallel_for(int64_t count, int64_t calls, FunctionRef<void(int64_t)> body);

// How long calls of a function take. Thread safety: any thread.
class CallCost {
 public:
  using Clock = std::chrono::steady_clock;
  // `calls` of them took from `start` until now.
  void add(Clock::time_point start, int64_t calls);
  // Whether handing `calls` of them to other threads costs less than it gains.
  bool worth_sharing(int64_t calls) const;

 private:
  std::atomic<double> ns_per_call_{0};
};

}  // namespace cohort::internal
