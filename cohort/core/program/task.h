// The task of a job for which the calling code acts. A process is one task as a rule; in an
// in-process cluster each server's threads act for a task of their own, and name their own devices.
//
//   const ScopedTask as_worker(Task::named("worker", 1));
//   canonicalize("CPU:0") == "/job:worker/replica:0/task:1/device:CPU:0";
//
//   // Work for another thread takes its caller's task along:
//   const Task& caller = Task::current();
//   std::thread([&caller] { const ScopedTask as_caller(caller); ... });
#pragma once

#include <string>
#include <utility>

namespace cohort::internal {

// There is one object for each name, which is never destroyed: references to it can be kept, and
// its address is a key. Thread safety: immutable.
class Task {
 public:
  static const Task& named(const std::string& job, int index);
  // The calling thread's: that of its innermost ScopedTask; outside of any, the process's, which is
  // task 0 of job localhost until set_for_process.
  static const Task& current();
  // Whether a ScopedTask lives on the calling thread.
  static bool is_scoped();
  // Lets threads outside of any ScopedTask act for `task` from now on: for a process that is one
  // task of a cluster.
  // Errors: FailedPrecondition (the process is another task already).
  static void set_for_process(const Task& task);

  Task(const Task&) = delete;
  Task& operator=(const Task&) = delete;

  const std::string& job() const { return job_; }
  int index() const { return index_; }
  // "/job:worker/task:1".
  std::string to_string() const;

 private:
  Task(std::string job, int index) : job_(std::move(job)), index_(index) {}
  const std::string job_;
  const int index_;
};

// Throws FailedPrecondition: `what` ("variable 'w'") belongs to `owner`, and the calling thread
// acts for another task.
[[noreturn]] void throw_of_other_task(const std::string& what, const Task& owner);

// For its lifetime the calling thread acts for `task`.
class [[nodiscard]] ScopedTask {
 public:
  explicit ScopedTask(const Task& task);
  ~ScopedTask();
  ScopedTask(const ScopedTask&) = delete;
  ScopedTask& operator=(const ScopedTask&) = delete;

 private:
  const Task* const previous_;
};

}  // namespace cohort::internal
