#include "cohort/core/host/core_contention.h"

#include <algorithm>

namespace cohort::internal {
namespace {

constexpr auto ticks(std::chrono::milliseconds time) {
  return CoreContention::Time::duration(time).count();
}

}  // namespace

void CoreContention::note(Time now) {
  const Time::rep time = now.time_since_epoch().count();
  const Time::rep until = until_.load(std::memory_order_relaxed);
  Time::rep hold = hold_.load(std::memory_order_relaxed);
  if (time >= until) {
    const bool again = hold > 0 && time < until + hold;
    hold = again ? std::min(2 * hold, ticks(kLongest)) : ticks(kShortest);
    hold_.store(hold, std::memory_order_relaxed);
  }
  until_.store(std::max(until, time + hold), std::memory_order_relaxed);
}

CoreContention& core_contention() {
  static CoreContention contention;
  return contention;
}

}  // namespace cohort::internal
