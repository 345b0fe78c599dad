#include "cohort/parameter_server/coordinator/worker_errors.h"

#include "cohort/cluster/rpc/coordinator_errors.h"
#include "cohort/cluster/rpc/error_detail.h"
#include "cohort/core/error.h"
#include "cohort/parameter_server/closures/closure_message.h"
#include "cohort/parameter_server/leadership/coordinator_fence.h"

namespace cohort::internal {

bool is_loss(const std::exception_ptr& error) {
  const ErrorDetail detail = rpc::detail_of(error);
  if (detail.phase == kInputLost || detail.phase == kStartedAgain || detail.phase == kFenced) {
    return true;
  }
  const ErrorRecord record = record_error(error);
  if (record.code == Code::kCancelled) {
    return detail.phase != kInFunction && detail.phase != kClosureInput;
  }
  return record.task.empty() && record.code == Code::kUnavailable;
}

bool is_fenced_by_later(const std::exception_ptr& error, int64_t generation) {
  const ErrorDetail detail = rpc::detail_of(error);
  return detail.phase == kFenced && detail.generation > generation;
}

bool is_overdue(const std::exception_ptr& error) {
  const ErrorRecord record = record_error(error);
  return record.task.empty() && record.code == Code::kDeadlineExceeded;
}

}  // namespace cohort::internal
