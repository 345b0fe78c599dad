// Timeouts of users, who may write milliseconds::max() for "as long as it takes": a sum with a clock, or
// the same in nanoseconds, would overflow, and the wait be over at once.
//
//   const auto deadline = std::chrono::steady_clock::now() + bounded_wait(options.timeout);
#pragma once

#include <algorithm>
#include <chrono>

namespace cohort::internal {

// Longer is as good as for ever.
inline constexpr std::chrono::hours kLongestWait{24 * 365};

// `wait`, but no further from 0 than that.
template <class Rep, class Period>
constexpr std::chrono::duration<Rep, Period> bounded_wait(
    const std::chrono::duration<Rep, Period>& wait) {
  using Wait = std::chrono::duration<Rep, Period>;
  return std::clamp<Wait>(wait, -Wait(kLongestWait), Wait(kLongestWait));
}

}  // namespace cohort::internal
