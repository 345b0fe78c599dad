#include "cohort/parameter_server/cluster/reported_failures.h"

#include "cohort/cluster/rpc/error_detail.h"
#include "cohort/core/error.h"
#include "cohort/core/observe/logging.h"

namespace cohort::internal {

void ReportedFailures::note(const std::exception_ptr& error) {
  const ErrorDetail detail = rpc::detail_of(error);
  if (detail.cause != Cause::kProgramFailed) return;
  const std::string text = record_error(error).message;
  const std::lock_guard lock(mutex_);
  std::string& last = last_[detail.peer];
  if (last == text) return;  // told again, to be sure
  log_warning(text);
  last = text;
  changed_.notify_all();
  if (first_ != nullptr) return;
  first_ = error;
  told_ = Clock::now();
}

std::exception_ptr ReportedFailures::first_older_than(Clock::duration age) const {
  const std::lock_guard lock(mutex_);
  return first_ != nullptr && Clock::now() - told_ >= age ? first_ : nullptr;
}

std::string ReportedFailures::of(const TaskId& task, Clock::time_point deadline) const {
  std::unique_lock lock(mutex_);
  auto found = last_.end();
  changed_.wait_until(lock, deadline, [&] {
    found = last_.find(to_string(task));
    return found != last_.end();
  });
  return found == last_.end() ? "" : found->second;
}

}  // namespace cohort::internal
