#include "cohort/collective/forming_wait.h"

#include <algorithm>

#include "cohort/core/error.h"

namespace cohort::collective {
namespace {

// A check asks the store, which costs a round trip.
constexpr std::chrono::milliseconds kBetweenChecks{100};

}  // namespace

FormingWait::FormingWait(const GroupMember& member, std::chrono::nanoseconds grace)
    : member_(member),
      deadline_(std::min(member.deadline, Clock::time_point::max() - grace) + grace),
      next_check_(Clock::now() + kBetweenChecks) {}

FormingWait::Clock::time_point FormingWait::until() const {
  return std::min(deadline_, next_check_);
}

bool FormingWait::is_over() {
  if (Clock::now() >= deadline_) return true;
  if (Clock::now() < next_check_) return false;
  member_.check();
  next_check_ = Clock::now() + kBetweenChecks;
  return false;
}

std::optional<std::string> FormingWait::value(const std::string& key) {
  do {
    try {
      return member_.store->get(key, until());
    } catch (const DeadlineExceededError&) {  // perhaps only until the next check
    }
  } while (!is_over());
  return std::nullopt;
}

}  // namespace cohort::collective
