#include "cohort/parameter_server/cluster/reported_failures.h"

#include "cohort/cluster/rpc/error_detail.h"
#include "cohort/core/error.h"
#include "cohort/core/observe/logging.h"

namespace cohort::internal {

void ReportedFailures::note(const std::exception_ptr& error) {
  const ErrorDetail detail = rpc::detail_of(error);
  if (detail.cause != Cause::kProgramFailed) return;
  const std::string text = record_error(error).message;
  const auto failures = failures_.change();
  std::string& last = failures->last[detail.peer];
  if (last == text) return;  // told again, to be sure
  log_warning(text);
  last = text;
  if (failures->first != nullptr) return;
  failures->first = error;
  failures->told = Clock::now();
}

std::exception_ptr ReportedFailures::first_older_than(Clock::duration age) const {
  const auto failures = failures_.lock();
  const bool is_old = failures->first != nullptr && Clock::now() - failures->told >= age;
  return is_old ? failures->first : nullptr;
}

std::string ReportedFailures::of(const TaskId& task, Clock::time_point deadline) const {
  const std::string name = to_string(task);
  auto failures = failures_.lock();
  if (!failures.wait_until(deadline, [&] { return failures->last.contains(name); })) return "";
  return failures->last.at(name);
}

}  // namespace cohort::internal
