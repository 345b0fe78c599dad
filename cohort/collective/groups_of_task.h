// Counts the groups of several tasks that a task is in: one for each strategy that it uses together
// with others. If two tasks wait for each other in different groups, both wait in vain; their
// warnings then say that this may be the reason.
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

// " (this task is in 2 groups; ...)": a possible reason why the tasks for which the calling
// thread's task waits do not come. Empty if it is in one group alone.
std::string hint_of_other_groups();

}  // namespace cohort::collective
