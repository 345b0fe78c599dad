#include "cohort/core/task_id.h"

#include <ostream>

namespace cohort {

std::string to_string(const TaskId& task) {
  return "/job:" + task.job + "/task:" + std::to_string(task.index);
}

std::ostream& operator<<(std::ostream& out, const TaskId& task) { return out << to_string(task); }

}  // namespace cohort
