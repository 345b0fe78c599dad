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

// The number of threads that input pipelines share: one per core, and at least two.
int num_pipeline_threads();

// Tasks that the pool may run early. A thread that needs a task which no other has begun runs it
// itself, so a task that waits for another one never waits for a free thread.
// Thread safety: the functions are called by one thread at a time; tasks run on any thread, with
// grad mode off.
class WorkGroup {
 public:
  class Task;
  using TaskPtr = std::shared_ptr<Task>;

  WorkGroup();
  // Cancels.
  ~WorkGroup();
  WorkGroup(const WorkGroup&) = delete;
  WorkGroup& operator=(const WorkGroup&) = delete;

  // `work` must not throw; it may end its thread.
  TaskPtr add(std::function<void()> work);
  bool is_done(const TaskPtr& task) const;
  // Returns when the task is done. There is no deadline: user functions may take any time.
  void finish(const TaskPtr& task);
  // Says that the task is not needed: it is not begun any more. Returns when it is not running.
  void drop(const TaskPtr& task);
  // Returns when at least one of the tasks (there must be one) is done; runs one itself if no other
  // thread has begun any.
  void finish_any(std::span<const TaskPtr> tasks);
  // Drops tasks that no thread has begun, and waits for the others.
  void cancel();

 private:
  struct State;
  std::shared_ptr<State> state_;
};

// Calls body(i) for all i in [0, count), up to `calls` of them at the same time, also on the
// caller's thread.
// Errors: what the failed call with the lowest i threw, after all have ended.
void parallel_for(int64_t count, int64_t calls, FunctionRef<void(int64_t)> body);

// Measures how long calls of a function take.
// Thread safety: any thread.
class CallCost {
 public:
  using Clock = std::chrono::steady_clock;
  // Records that `calls` calls took from `start` until now.
  void add(Clock::time_point start, int64_t calls);
  // Whether handing `calls` calls to other threads costs less than it saves.
  bool worth_sharing(int64_t calls) const;

 private:
  std::atomic<double> ns_per_call_{0};
};

}  // namespace cohort::internal
