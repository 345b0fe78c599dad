// What the errors of calls to workers mean for a coordinator.
#pragma once

#include <cstdint>
#include <exception>

#include "cohort/core/program/task_id.h"

namespace cohort::internal {

// Whether the error of a call to `worker` says that it went away, not that its function failed.
bool is_loss(const std::exception_ptr& error, const TaskId& worker);
// Whether it says that a coordinator of a later generation leads.
bool is_fenced_by_later(const std::exception_ptr& error, int64_t generation);
// Whether the worker has not answered in time: it may run the closure still.
bool is_overdue(const std::exception_ptr& error, const TaskId& worker);

}  // namespace cohort::internal
