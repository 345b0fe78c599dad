#include "cohort/distribute/tasks/task_errors.h"

#include <algorithm>
#include <string>
#include <vector>

#include "cohort/cluster/rpc/error_detail.h"
#include "cohort/collective/task_collectives.h"
#include "cohort/core/caught_error.h"
#include "cohort/core/error.h"

namespace cohort::internal {
namespace {

[[noreturn]] void throw_told(collective::SyncGroup& group, const TaskError& told,
                             std::string_view what) {
  const std::string task = group.between().task_name(told.task);
  const ErrorRecord reason = record_error(told.error);
  throw_error(reason.code, str(what, " of ", task, " failed: ", reason.message),
              reason.task.empty() ? task : reason.task);
}

// What a task brings before the text of its function, or before its error.
constexpr char kText = 't', kFailed = 'f';

}  // namespace

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
  if (told) throw_told(group, *told, what);
}

std::vector<std::string> texts_of_all_tasks_or_error(collective::SyncGroup& group,
                                                     std::string_view what,
                                                     FunctionRef<std::string()> fn) {
  if (!group.spans_tasks()) return {fn()};
  std::string mine(1, kText);
  std::exception_ptr failed;
  try {
    mine += fn();
  } catch (...) {
    failed = caught_error();
    mine = kFailed + rpc::encode_error(failed);
  }
  std::vector<std::string> texts;
  try {
    texts = collective::all_tasks_texts(group, mine, what);
  } catch (...) {
    if (failed) std::rethrow_exception(failed);
    throw;
  }
  if (failed) std::rethrow_exception(failed);
  for (size_t task = texts.size(); task-- > 0;) {
    if (texts[task].starts_with(kFailed)) {
      throw_told(group, {static_cast<int>(task), rpc::decode_error(texts[task].substr(1))}, what);
    }
    texts[task].erase(0, 1);
  }
  return texts;
}

}  // namespace cohort::internal
