// What the tasks of a cluster have told their coordinator of their own failures.
#pragma once

#include <chrono>
#include <exception>
#include <map>
#include <string>

#include "cohort/core/program/task_id.h"
#include "cohort/core/threads/synchronized.h"

namespace cohort::internal {

// Thread safety: any thread.
class ReportedFailures {
 public:
  using Clock = std::chrono::steady_clock;

  // Errors that have not Cause::kProgramFailed are passed over.
  void note(const std::exception_ptr& error);
  // The first, where it was told at least so long ago; else null.
  std::exception_ptr first_older_than(Clock::duration age) const;
  // What this task has said last, which is waited for until the deadline; empty: nothing.
  std::string of(const TaskId& task, Clock::time_point deadline = {}) const;

 private:
  struct Failures {
    std::exception_ptr first;
    Clock::time_point told;
    std::map<std::string, std::string> last;  // by task
  };
  Synchronized<Failures> failures_;
};

}  // namespace cohort::internal
