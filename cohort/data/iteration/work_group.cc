#include "cohort/data/iteration/work_group.h"

#include <c10/core/GradMode.h>

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <vector>

#include "cohort/core/caught_error.h"
#include "cohort/core/program/process.h"
#include "cohort/core/threads/thread_pool.h"

namespace cohort::internal {
namespace {

// Below that, waking a thread and taking the result from it costs more than the work.
constexpr double kWorthSharingNs = 20'000;

struct Pool {
  const HomeProcess home;
  ThreadPool threads{"pipeline", num_pipeline_threads()};
};

// Never destroyed: an iterator may outlive static objects. A child of fork gets one of its own.
ThreadPool& pool() {
  static std::atomic<Pool*> current{nullptr};
  Pool* pool = current.load();
  while (pool == nullptr || !pool->home.is_here()) {
    auto fresh = std::make_unique<Pool>();
    if (current.compare_exchange_strong(pool, fresh.get())) pool = fresh.release();
  }
  return pool->threads;
}

}  // namespace

int num_pipeline_threads() {
  static const int count = std::max(2, num_usable_cores());
  return count;
}

class WorkGroup::Task {
 public:
  enum class Stage { kWaiting, kRunning, kDone };
  explicit Task(std::function<void()> work) : work_(std::move(work)) {}

  std::function<void()> work_;
  Stage stage_ = Stage::kWaiting;  // guarded by the group's mutex
};

struct WorkGroup::State {
  std::mutex mutex;
  std::condition_variable changed;  // a task has become done
  std::vector<TaskPtr> waiting;     // for a thread; guarded by mutex
  int running = 0;                  // guarded by mutex

  // Runs the task unless somebody else has begun it. `lock` is held before and after.
  void run(Task& task, std::unique_lock<std::mutex>& lock) {
    if (task.stage_ != Task::Stage::kWaiting) return;
    task.stage_ = Task::Stage::kRunning;
    std::erase_if(waiting, [&](const TaskPtr& other) { return other.get() == &task; });
    ++running;
    lock.unlock();
    const Ending ending{*this, task, lock};
    const c10::NoGradGuard no_grad;
    task.work_();
  }

 private:
  // After the work, also if that ends its thread.
  struct Ending {
    State& state;
    Task& task;
    std::unique_lock<std::mutex>& lock;
    ~Ending() {
      task.work_ = nullptr;
      lock.lock();
      task.stage_ = Task::Stage::kDone;
      --state.running;
      state.changed.notify_all();
    }
  };
};

WorkGroup::WorkGroup() : state_(std::make_shared<State>()) {}
WorkGroup::~WorkGroup() { cancel(); }

WorkGroup::TaskPtr WorkGroup::add(std::function<void()> work) {
  auto task = std::make_shared<Task>(std::move(work));
  {
    const std::lock_guard lock(state_->mutex);
    state_->waiting.push_back(task);
  }
  pool().schedule([state = state_, task] {
    std::unique_lock lock(state->mutex);
    state->run(*task, lock);
  });
  return task;
}

bool WorkGroup::is_done(const TaskPtr& task) const {
  const std::lock_guard lock(state_->mutex);
  return task->stage_ == Task::Stage::kDone;
}

void WorkGroup::finish(const TaskPtr& task) {
  std::unique_lock lock(state_->mutex);
  state_->run(*task, lock);
  state_->changed.wait(lock, [&] { return task->stage_ == Task::Stage::kDone; });
}

// What the work captures, perhaps the task itself, goes when the lock is free again.
void WorkGroup::drop(const TaskPtr& task) {
  std::function<void()> dropped;
  std::unique_lock lock(state_->mutex);
  if (task->stage_ == Task::Stage::kWaiting) {
    task->stage_ = Task::Stage::kDone;
    dropped.swap(task->work_);
    std::erase(state_->waiting, task);
  }
  state_->changed.wait(lock, [&] { return task->stage_ == Task::Stage::kDone; });
}

void WorkGroup::finish_any(std::span<const TaskPtr> tasks) {
  std::unique_lock lock(state_->mutex);
  const auto any = [&](Task::Stage stage) {
    return std::any_of(tasks.begin(), tasks.end(),
                       [&](const TaskPtr& task) { return task->stage_ == stage; });
  };
  if (any(Task::Stage::kDone)) return;
  if (!any(Task::Stage::kRunning)) return state_->run(*tasks.front(), lock);
  state_->changed.wait(lock, [&] { return any(Task::Stage::kDone); });
}

void WorkGroup::cancel() {
  std::vector<std::function<void()>> dropped;  // goes when the lock is free again
  std::unique_lock lock(state_->mutex);
  for (const TaskPtr& task : state_->waiting) {
    task->stage_ = Task::Stage::kDone;
    dropped.push_back(std::move(task->work_));
    task->work_ = nullptr;
  }
  state_->waiting.clear();
  state_->changed.wait(lock, [&] { return state_->running == 0; });
}

void parallel_for(int64_t count, int64_t calls, FunctionRef<void(int64_t)> body) {
  std::atomic<int64_t> next{0};
  std::mutex mutex;
  std::exception_ptr error;
  int64_t failed = count;
  const auto call = [&](int64_t i) {
    std::exception_ptr thrown;
    struct Note {  // also where the thread is ended
      FunctionRef<void()> note;
      ~Note() { note(); }
    };
    const auto note = [&] {
      const std::lock_guard lock(mutex);
      if (!thrown || i >= failed) return;
      failed = i;
      error = thrown;
    };
    const Note at_end{note};
    keep_error(thrown, "a function on elements", [&] { body(i); });
  };
  const auto work = [&] {
    for (int64_t i = next++; i < count; i = next++) call(i);
  };
  {
    WorkGroup group;
    for (int64_t helper = 1; helper < std::min(calls, count); ++helper) group.add(work);
    work();
    group.cancel();
  }
  if (error) std::rethrow_exception(error);
}

void CallCost::add(Clock::time_point start, int64_t calls) {
  if (calls < 1) return;
  const std::chrono::duration<double, std::nano> took = Clock::now() - start;
  const double now = took.count() / static_cast<double>(calls);
  const double before = ns_per_call_.load(std::memory_order_relaxed);
  // Half-way to each new figure: a slow start is soon forgotten.
  ns_per_call_.store(before == 0 ? now : (before + now) / 2, std::memory_order_relaxed);
}

bool CallCost::worth_sharing(int64_t calls) const {
  return ns_per_call_.load(std::memory_order_relaxed) * static_cast<double>(calls) >
         kWorthSharingNs;
}

}  // namespace cohort::internal
