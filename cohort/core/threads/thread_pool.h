// A fixed set of threads that run tasks: parallel maps, prefetching, background writing.
#pragma once

#include <functional>
#include <memory>
#include <string>

namespace cohort {

// Thread safety: any thread may schedule; the destructor must not race with that.
class ThreadPool {
 public:
  // Errors: InvalidArgument (num_threads below 1), ResourceExhausted (no more threads to be had).
  ThreadPool(std::string name, int num_threads);
  // Runs what is queued, then joins. Never throws. From one of its own tasks (as that releases what
  // owns the pool) it runs what is queued on this thread, and joins the others. In a child of
  // fork nothing is run, and the pool's memory stays.
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int num_threads() const;
  // Runs `task` on some thread, first come first served, for the caller's task of the job (see
  // task.h). A task that throws is logged as an error and dropped: a task that can fail keeps its
  // own error.
  // Errors: FailedPrecondition (in a child of the process that made the pool).
  void schedule(std::function<void()> task);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

namespace internal {
// The cores that this process may use: its affinity mask's, at most its cgroups' quota. At least 1.
int num_usable_cores();
// Names the calling thread for debuggers (15 characters count).
void set_thread_name(const std::string& name);
}  // namespace internal

}  // namespace cohort
