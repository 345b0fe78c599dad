#include "cohort/core/program/task_id.h"

#include <ostream>

#include "cohort/core/text.h"

namespace cohort {

std::string to_string(const TaskId& task) {
  return "/job:" + task.job + "/task:" + internal::decimal_digits(task.index);
}

std::ostream& operator<<(std::ostream& out, const TaskId& task) { return out << to_string(task); }

}  // namespace cohort
