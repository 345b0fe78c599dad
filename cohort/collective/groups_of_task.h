// How many groups of several tasks a task is in: one for each strategy that it uses together with others. A task that
// waits in one of them for a task that waits for it in another waits in vain, and says what that may be.
//
//   log_warning(who, " has waited ", time, " for ", whom, hint_of_other_groups());
#pragma once

#include <string>

#include "cohort/core/program/task.h"

namespace cohort::collective {

// Counts one group more for the task for which its maker acts, as long as it lives.
// Thread safety: made and ended on any thread.
class GroupOfTask {
 public:
  GroupOfTask();
  ~GroupOfTask();
  GroupOfTask(const GroupOfTask&) = delete;
  GroupOfTask& operator=(const GroupOfTask&) = delete;

 private:
  const internal::Task& task_;
};

// " (this task is in 2 groups; ...)": what may be the reason why those for whom the calling thread's task waits do not
// come. Empty where it is in one group alone.
std::string hint_of_other_groups();

}  // namespace cohort::collective
