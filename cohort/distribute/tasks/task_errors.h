// How an error of one task becomes an error of all tasks of its group, which goes on afterwards.
#pragma once

#include <exception>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cohort/collective/sync_group.h"
#include "cohort/core/function_ref.h"

namespace cohort::internal {

struct TaskError {
  int task = 0;  // its rank
  std::exception_ptr error;
};

// The error of a task that has one: of the last of them. `mine` is this task's, or null; `name`
// that of the exchange. COLLECTIVE over the tasks. Errors: those of a Communicator's calls.
std::optional<TaskError> tell_errors(collective::SyncGroup& group, const std::exception_ptr& mine,
                                     std::string_view name);

// Calls `fn`, which makes no call that needs other tasks. If it throws in one task, this throws in
// all: in that task what fn has thrown, in the others an error of its class: "WHAT of
// /job:worker/task:1 failed: ...".
// COLLECTIVE over the tasks. Errors: those of fn; those of a Communicator's calls.
void in_all_tasks_or_none(collective::SyncGroup& group, std::string_view what,
                          FunctionRef<void()> fn);

// The same, and returns what `fn` has returned in each task, in the order of ranks.
std::vector<std::string> texts_of_all_tasks_or_error(collective::SyncGroup& group,
                                                     std::string_view what,
                                                     FunctionRef<std::string()> fn);

}  // namespace cohort::internal
