// Warns in the log when a call has waited for a while, and says for whom.
//
//   SlowWait slow(member.slow_after);
//   while (!arrived()) {
//     sleep_until(std::min(deadline, slow.due()));
//     if (slow.is_due()) slow.warn("all_reduce 'x'", "/job:worker/task:0", "/job:worker/task:1");
//   }
#pragma once

#include <chrono>
#include <string_view>

#include "cohort/collective/groups_of_task.h"
#include "cohort/core/observe/logging.h"

namespace cohort::collective {

// Thread safety: none.
class SlowWait {
 public:
  explicit SlowWait(std::chrono::nanoseconds slow_after)
      : begin_(Clock::now()), slow_after_(slow_after), due_(begin_ + slow_after) {}

  std::chrono::steady_clock::time_point due() const { return due_; }
  bool is_due() const { return Clock::now() >= due_; }

  // Writes the warning. The next one is due after as long again.
  void warn(std::string_view call, std::string_view who, std::string_view for_whom) {
    const auto now = Clock::now();
    due_ = now + slow_after_;
    internal::log_warning(
        who, " has waited ",
        std::chrono::duration_cast<std::chrono::milliseconds>(now - begin_).count(), " ms in ",
        call, " for ", for_whom, hint_of_other_groups());
  }

 private:
  using Clock = std::chrono::steady_clock;

  const Clock::time_point begin_;
  const std::chrono::nanoseconds slow_after_;
  Clock::time_point due_;
};

}  // namespace cohort::collective
