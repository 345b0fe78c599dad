#include "cohort/distribute/tasks/task_errors.h"

#include <algorithm>
#include <string>
#include <vector>

#include "cohort/cluster/rpc/error_detail.h"
#include "cohort/collective/task_collectives.h"
#include "cohort/core/caught_error.h"
#include "cohort/core/error.h"

namespace cohort::internal {

std::optional<TaskError> tell_errors(collective::SyncGroup& group, const std::exception_ptr& mine,
                                     std::string_view name) {
  const std::vector<std::string> errors =
      collective::all_tasks_texts(group, mine ? rpc::encode_error(mine) : "", name);
  const auto last = std::find_if(errors.rbegin(), errors.rend(),
                                 [](const std::string& error) { return !error.empty(); });
  if (last == errors.rend()) return std::nullopt;
  return TaskError{static_cast<int>(errors.rend() - last) - 1, rpc::decode_error(*last)};
}

void in_all_tasks_or_none(collective::SyncGroup& group, std::string_view what,
                          FunctionRef<void()> fn) {
  if (!group.spans_tasks()) return fn();
  std::exception_ptr mine;
  try {
    fn();
  } catch (...) {
    mine = caught_error();
  }
  std::optional<TaskError> told;
  try {
    told = tell_errors(group, mine, what);
  } catch (...) {
    if (mine) std::rethrow_exception(mine);
    throw;
  }
  if (mine) std::rethrow_exception(mine);
  if (!told) return;
  const std::string task = group.between().task_name(told->task);
  const ErrorRecord reason = record_error(told->error);
  throw_error(reason.code, str(what, " of ", task, " failed: ", reason.message),
              reason.task.empty() ? task : reason.task);
}

}  // namespace cohort::internal
