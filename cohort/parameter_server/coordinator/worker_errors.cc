#include "cohort/parameter_server/coordinator/worker_errors.h"

#include "cohort/cluster/rpc/error_detail.h"
#include "cohort/core/error.h"

namespace cohort::internal {

bool is_loss(const std::exception_ptr& error, const TaskId& worker) {
  switch (rpc::detail_of(error).cause) {
    case Cause::kInputLost:
    case Cause::kStartedAgain:
    case Cause::kFenced:
      return true;
    case Cause::kFunctionCancelled:
    case Cause::kInputFailed:
      return false;
    default:
      return record_error(error).code == Code::kCancelled ||
             rpc::is_unanswered(error, Code::kUnavailable, worker);
  }
}

bool is_fenced_by_later(const std::exception_ptr& error, int64_t generation) {
  const ErrorDetail detail = rpc::detail_of(error);
  return detail.cause == Cause::kFenced && detail.generation > generation;
}

bool is_overdue(const std::exception_ptr& error, const TaskId& worker) {
  return rpc::is_unanswered(error, Code::kDeadlineExceeded, worker);
}

}  // namespace cohort::internal
