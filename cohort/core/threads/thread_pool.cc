#include "cohort/core/threads/thread_pool.h"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "cohort/core/error.h"
#include "cohort/core/host/cgroups.h"
#include "cohort/core/observe/logging.h"
#include "cohort/core/program/process.h"
#include "cohort/core/program/task.h"
#include "cohort/core/text.h"

namespace cohort {

struct ThreadPool::State {
  struct Queued {
    std::function<void()> task;
    const internal::Task* caller;
  };

  const internal::HomeProcess home;
  std::string name;
  std::mutex mutex;
  std::condition_variable wake;
  std::deque<Queued> queue;  // guarded by mutex
  bool stopping = false;     // guarded by mutex
  int num_threads = 0;
  std::vector<std::thread> threads;  // guarded by mutex

  ~State() { stop(); }

  bool is_own_thread() {
    const std::lock_guard lock(mutex);
    return own_thread() != threads.end();
  }
  std::vector<std::thread>::iterator own_thread() {
    return std::find_if(threads.begin(), threads.end(), [](const std::thread& thread) {
      return thread.get_id() == std::this_thread::get_id();
    });
  }
  // Returns when all tasks and threads have ended, but for the calling one and its task: a thread
  // of the pool runs the tasks that are left itself.
  void stop();
  void start_thread(int index) {
    const std::lock_guard lock(mutex);
    threads.emplace_back([this, index] { run_tasks(index); });
  }
  void replace_this_thread(int index);
  void run_tasks(int index);
  // Runs the first task of the queue, without the lock.
  void run_next(std::unique_lock<std::mutex>& lock, int index);
  void run_one(const std::function<void()>& task, int index);
};

// Replaces this thread after a task has ended it (pthread_exit), because others wait for the tasks
// in the queue. Must not throw, or the C library aborts.
void ThreadPool::State::replace_this_thread(int index) {
  using logging::Level;
  internal::log(
      Level::kError, "a task of thread pool '", name,
      "' ended its thread, by pthread_exit or pthread_cancel; another thread takes its place");
  {
    const std::lock_guard lock(mutex);
    const auto self = own_thread();
    if (self != threads.end()) {  // else the destructor waits for this thread already
      self->detach();
      threads.erase(self);
    }
  }
  try {
    start_thread(index);
  } catch (const std::system_error& error) {
    internal::log(Level::kError, "thread pool '", name, "' could not start it: ", error.what());
  }
}

void ThreadPool::State::run_tasks(int index) {
  internal::set_thread_name(name + "/" + internal::decimal_digits(index));
  std::unique_lock lock(mutex);
  while (true) {
    wake.wait(lock, [this] { return stopping || !queue.empty(); });
    if (queue.empty()) return;
    run_next(lock, index);
  }
}

void ThreadPool::State::run_next(std::unique_lock<std::mutex>& lock, int index) {
  {
    const internal::ScopedTask as_caller(*queue.front().caller);
    const std::function<void()> task = std::move(queue.front().task);
    queue.pop_front();
    lock.unlock();
    run_one(task, index);
    // The task is destroyed before the lock is taken, because destructors of what it holds may
    // schedule again.
  }
  lock.lock();
}

void ThreadPool::State::stop() {
  std::unique_lock lock(mutex);
  stopping = true;
  wake.notify_all();
  const bool is_own = own_thread() != threads.end();
  while (is_own && !queue.empty()) run_next(lock, num_threads);
  while (threads.size() > (is_own ? 1 : 0)) {
    if (is_own) std::swap(*own_thread(), threads.front());
    std::thread thread = std::move(threads.back());
    threads.pop_back();
    lock.unlock();
    thread.join();
    lock.lock();
  }
}

void ThreadPool::State::run_one(const std::function<void()>& task, int index) {
  using logging::Level;
  try {
    task();
  } catch (const std::exception&) {
    internal::log(Level::kError, "a task of thread pool '", name,
                  "' failed: ", internal::record_error(std::current_exception()).message);
  } catch (...) {
    if (std::current_exception() == nullptr) {
      replace_this_thread(index);
      throw;
    }
    internal::log(Level::kError, "a task of thread pool '", name,
                  "' threw something that is no std::exception");
  }
}

ThreadPool::ThreadPool(std::string name, int num_threads) : state_(std::make_unique<State>()) {
  if (num_threads < 1) {
    throw InvalidArgumentError(
        internal::str("thread pool '", name, "' needs at least one thread, but got ", num_threads));
  }
  state_->name = std::move(name);
  state_->num_threads = num_threads;
  int started = 0;
  try {
    for (; started < num_threads; ++started) state_->start_thread(started);
  } catch (const std::system_error& error) {
    throw ResourceExhaustedError(internal::str("thread pool '", state_->name, "' could start only ",
                                               started, " of ", num_threads,
                                               " threads: ", error.what()));
  }
}

ThreadPool::~ThreadPool() {
  if (!state_->home.is_here()) {
    [[maybe_unused]] State* const left = state_.release();
  } else if (state_->is_own_thread()) {
    state_->stop();  // the other tasks may need what owns the pool
    // A thread cannot join itself: another one does, when this task has ended.
    State* const left = state_.release();
    try {
      std::thread([left] { delete left; }).detach();
    } catch (const std::system_error&) {  // no thread to be had: the pool stays
    }
  }
}

int ThreadPool::num_threads() const { return state_->num_threads; }

void ThreadPool::schedule(std::function<void()> task) {
  state_->home.check("a thread pool");
  {
    std::lock_guard lock(state_->mutex);
    state_->queue.push_back({std::move(task), &internal::Task::current()});
  }
  state_->wake.notify_one();
}

namespace internal {

int num_usable_cores() {
  // The kernel refuses a mask smaller than its own, whose size it does not tell.
  constexpr int kMostCores = 1 << 16;
  for (int cores = CPU_SETSIZE; cores <= kMostCores; cores *= 2) {
    std::vector<cpu_set_t> mask(static_cast<size_t>(cores / CPU_SETSIZE));
    const size_t bytes = mask.size() * sizeof(cpu_set_t);
    if (sched_getaffinity(0, bytes, mask.data()) == 0) {
      return cores_under(Cgroups().cpu_quota(), CPU_COUNT_S(bytes, mask.data()));
    }
  }
  return cores_under(Cgroups().cpu_quota(), static_cast<int>(std::thread::hardware_concurrency()));
}

void set_thread_name(const std::string& name) {
  constexpr size_t kMostCharacters = 15;
  pthread_setname_np(pthread_self(), name.substr(0, kMostCharacters).c_str());
}

}  // namespace internal
}  // namespace cohort
