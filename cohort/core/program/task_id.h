// The name of one task of a cluster: its job and its index in that job.
//
//   TaskId{"worker", 1}    // prints as /job:worker/task:1
#pragma once

#include <compare>
#include <iosfwd>
#include <string>

#include "cohort/core/export.h"

namespace cohort {

struct TaskId {
  std::string job;
  int index = 0;
  auto operator<=>(const TaskId&) const = default;
};
COHORT_API std::string to_string(const TaskId& task);
COHORT_API std::ostream& operator<<(std::ostream& out, const TaskId& task);

}  // namespace cohort
