#include "cohort/keras/training/interrupt_requests.h"

#include <algorithm>
#include <vector>

#include "cohort/collective/task_collectives.h"

namespace cohort::internal {

bool InterruptRequests::any() {
  constexpr int64_t kAgreeEvery = 16;
  if (!core_->group().spans_tasks()) return InterruptScope::requested();
  ++calls_;
  // A task that has joined the others later has made fewer of these calls.
  return core_->calls_together().value_or(calls_) % kAgreeEvery == 0 && any_now();
}

bool InterruptRequests::any_now() {
  const bool here = InterruptScope::requested();
  if (!core_->group().spans_tasks()) return here;
  const std::vector<uint8_t> all = collective::all_tasks_values(
      core_->group(), static_cast<uint8_t>(here ? 1 : 0), "requests to interrupt");
  return std::count(all.begin(), all.end(), 0) < std::ssize(all);
}

}  // namespace cohort::internal
