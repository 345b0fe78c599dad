// The pauses between attempts at what may succeed later: each is twice the one before, up to a
// longest one.
//
//   Backoff backoff(milliseconds(10), milliseconds(200));
//   clock.call_at(clock.now() + backoff.next(), again);
//
// A thread that has nothing else to do, and whom nobody can wake, sleeps:
//
//   Backoff pauses(milliseconds(2));
//   while (!is_there() && pauses.sleep(deadline)) continue;
#pragma once

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

namespace cohort::internal {

// Thread safety: none.
class Backoff {
 public:
  using Clock = std::chrono::steady_clock;

  constexpr Backoff(Clock::duration first, Clock::duration longest)
      : next_(std::min(first, longest)), longest_(longest) {}
  // The same pause each time.
  explicit constexpr Backoff(Clock::duration pause) : Backoff(pause, pause) {}

  // The pause before the next attempt.
  constexpr Clock::duration next() {
    return std::exchange(next_, next_ < longest_ / 2 ? 2 * next_ : longest_);
  }

  // Sleeps for the next pause, until the deadline at most. False, at once, if that has passed.
  bool sleep(Clock::time_point deadline) {
    const Clock::time_point now = Clock::now();
    if (now >= deadline) return false;
    std::this_thread::sleep_for(std::min(next(), deadline - now));
    return true;
  }

 private:
  Clock::duration next_;
  Clock::duration longest_;
};

}  // namespace cohort::internal
