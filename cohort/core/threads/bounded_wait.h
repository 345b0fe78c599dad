// Bounds the timeouts of users, who may write milliseconds::max() for "as long as it takes". Adding
// this to a clock, or converting it to nanoseconds, would overflow, and the wait would be over at
// once.
//
//   const auto deadline = std::chrono::steady_clock::now() + bounded_wait(options.timeout);
#pragma once

#include <algorithm>
#include <chrono>

namespace cohort::internal {

// The longest wait. A longer one is as good as for ever.
inline constexpr std::chrono::hours kLongestWait{24 * 365};

// `wait`, limited to kLongestWait in both directions.
template <class Rep, class Period>
constexpr std::chrono::duration<Rep, Period> bounded_wait(
    const std::chrono::duration<Rep, Period>& wait) {
  using Wait = std::chrono::duration<Rep, Period>;
  return std::clamp<Wait>(wait, -Wait(kLongestWait), Wait(kLongestWait));
}

}  // namespace cohort::internal
