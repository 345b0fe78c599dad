#include "cohort/distribute/preemption/done_together.h"

#include "cohort/cluster/rpc/error_detail.h"
#include "cohort/core/caught_error.h"
#include "cohort/core/error.h"
#include "cohort/core/observe/logging.h"
#include "cohort/core/text.h"

namespace cohort::internal {
namespace {

bool may_be_refusal(const std::exception_ptr& error) {
  return record_error(error).code == Code::kFailedPrecondition;
}

}  // namespace

std::string DoneTogether::failed_key() const { return keys_ + "/failed"; }

std::string DoneTogether::ended_keys() const { return keys_ + "/ended/"; }

void DoneTogether::run(const std::string& what, FunctionRef<void()> part) const {
  std::exception_ptr own;
  try {
    part();
  } catch (...) {
    own = caught_error();
  }
  const StopWait wait{str("the tasks cannot end ", what, " together: "), " has not ended it for ",
                      StopWait::Clock::now(), group_.patience_for_call};
  std::optional<Failure> first;
  try {
    tell_end(own, wait);
    wait_for_ends(what, wait);
    first = first_failure(wait);
  } catch (const std::exception&) {
    if (own == nullptr) throw;  // else it says more than that the others cannot be told
  }
  const bool is_own = !first || first->task == group_.self || !may_be_refusal(own);
  if (own != nullptr && is_own) std::rethrow_exception(own);
  if (!first) return;
  if (own != nullptr) log_info(what, " has ended here by: ", record_error(own).message);
  const std::string task = name_of(group_, first->task);
  const ErrorRecord reason = record_error(first->error);
  throw_error(reason.code, str(what, " of ", task, " failed: ", reason.message),
              reason.task.empty() ? task : reason.task);
}

void DoneTogether::tell_end(const std::exception_ptr& error, const StopWait& wait) const {
  const std::string self = decimal_digits(group_.self);
  if (error != nullptr) {
    const std::string failure = str(self, ' ', rpc::encode_error(error));
    until_answered(
        wait, [&] { return group_.cluster->compare_and_set(failed_key(), std::nullopt, failure); });
  }
  until_answered(wait, [&] { group_.cluster->set(ended_keys() + self, ""); });
}

void DoneTogether::wait_for_ends(const std::string& what, const StopWait& wait) const {
  std::vector<size_t> awaited = others_;
  bool have_met = false;
  while (true) {
    const distribute::ClusterView view = group_.cluster->view();
    drop(awaited, tasks_under(group_, ended_keys(), wait));
    const bool have_all_ended = awaited.empty();
    if (!have_met) have_met = meet(what, have_all_ended);
    if (have_all_ended) return;
    check_awaited(group_, awaited, view, wait);
    look_for(group_, str(ended_keys(), awaited.front()));
  }
}

// Returns whether all have come to the barrier; false if a task was still at a call of its part.
bool DoneTogether::meet(const std::string& what, bool have_all_ended) const {
  try {
    calls_.barrier("", {str("the end of ", what), group_.patience_for_call});
    return true;
  } catch (const FailedPreconditionError&) {
    if (have_all_ended) throw;
    return false;
  }
}

std::optional<DoneTogether::Failure> DoneTogether::first_failure(const StopWait& wait) const {
  const std::optional<std::string> failed =
      until_answered(wait, [&] { return group_.cluster->find(failed_key()); });
  if (!failed) return std::nullopt;
  const size_t end = failed->find(' ');
  return Failure{parse_task(group_, failed->substr(0, end)),
                 rpc::decode_error(end == failed->npos ? "" : failed->substr(end + 1))};
}

}  // namespace cohort::internal
