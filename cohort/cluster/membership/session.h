// A task's process, as the members of a cluster know it.
#pragma once

#include <cstdint>

#include "cohort/core/program/task_id.h"

namespace cohort::internal::membership {

// The task that makes a call, and its process.
struct Session {
  TaskId task;
  uint64_t incarnation = 0;

  bool operator==(const Session&) const = default;
};

}  // namespace cohort::internal::membership
