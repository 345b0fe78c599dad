#include "cohort/parameter_server/cluster/lost_ps.h"

#include "cohort/cluster/known_jobs.h"
#include "cohort/cluster/rpc/coordinator_errors.h"
#include "cohort/cluster/rpc/error_detail.h"
#include "cohort/core/error.h"

namespace cohort::internal {

std::exception_ptr lost_ps_error(const LostPs& ps, const std::string& why) {
  return rpc::make_error(
      Code::kUnavailable,
      str("lost ", ps.task, " (", ps.address, "), and its variables with it: ", why,
          ps.told.empty() ? "" : str(" (", ps.told, ")"), ". Start the program again; ",
          ps.checkpoint.empty()
              ? "it has saved no checkpoint that it could go on from"
              : str("it can go on from its last checkpoint, '", ps.checkpoint, "'")),
      to_string(ps.task),
      {.peer = to_string(ps.task), .generation = ps.generation, .cause = Cause::kPsLost});
}

int unanswering_ps(const std::exception_ptr& error, int num_ps) {
  const ErrorDetail detail = rpc::detail_of(error);
  const ErrorRecord record = record_error(error);
  // A ps task that ends answers so itself; of a channel that was closed, it is the caller that
  // ends.
  const bool is_cancelled = record.code == Code::kCancelled;
  const std::string& peer = is_cancelled && detail.peer.empty() ? record.task : detail.peer;
  const bool is_its_own = is_cancelled && record.task == peer;
  if (!is_its_own && record.code != Code::kUnavailable && record.code != Code::kDeadlineExceeded) {
    return -1;
  }
  for (int ps = 0; ps < num_ps; ++ps) {
    if (peer == to_string(TaskId{kPs, ps})) return ps;
  }
  return -1;
}

}  // namespace cohort::internal
