// Limits a task's waits while its group forms: to the time that the group may take, and to a group
// that can still form.
//
//   FormingWait wait(member);
//   while (!came(wait.until())) {
//     if (wait.is_over()) throw DeadlineExceededError(...);
//   }
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "cohort/collective/group_member.h"

namespace cohort::collective {

// Thread safety: none.
class FormingWait {
 public:
  using Clock = std::chrono::steady_clock;

  // Waits until the member's deadline, and `grace` longer. `member` outlives it.
  explicit FormingWait(const GroupMember& member, std::chrono::nanoseconds grace = {});

  // The time until which one wait may last.
  Clock::time_point until() const;
  // Whether the deadline has passed. Asks the member's check, when it is time.
  // Errors: those of GroupMember::check.
  bool is_over();
  // The value that a task leaves under this key; nothing at the deadline.
  // Errors: those of GroupMember::check and of the store.
  std::optional<std::string> value(const std::string& key);

 private:
  const GroupMember& member_;
  const Clock::time_point deadline_;
  Clock::time_point next_check_;
};

}  // namespace cohort::collective
