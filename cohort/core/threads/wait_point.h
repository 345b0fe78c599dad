// Waits for values that other threads set in atomics. A short wait costs only a few loads.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>

#include "cohort/core/host/futex.h"
#include "cohort/core/host/polling.h"

namespace cohort::internal {

// The predicate reads atomics that somebody sets before calling notify(); with sequentially
// consistent stores no wake-up is lost.
//
// It is no condition variable, because glibc's may hold up the thread that notifies until a
// thread that was woken before has got a core.
// Thread safety: any thread.
class WaitPoint {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr Clock::time_point kForever = Clock::time_point::max();

  // Polls for up to `spin` (host/polling.h), then sleeps, until predicate() or the deadline;
  // returns predicate().
  template <class Predicate>
  bool wait(Predicate predicate, std::chrono::nanoseconds spin, Clock::time_point deadline) {
    if (polling_.poll(predicate, spin)) return true;
    sleepers_.fetch_add(1, std::memory_order_seq_cst);
    bool met = false;
    while (true) {
      const uint32_t seen = notifications_.load(std::memory_order_seq_cst);
      met = predicate();
      const Clock::time_point now =
          met || deadline == kForever ? Clock::time_point() : Clock::now();
      if (met || now >= deadline) break;
      futex_wait(notifications_, seen, std::min<Clock::duration>(deadline - now, kLongestSleep));
    }
    sleepers_.fetch_sub(1, std::memory_order_relaxed);
    return met;
  }

  // Wakes all threads that sleep here, and waits for none of them. Costs one load if none sleeps.
  void notify() {
    if (sleepers_.load(std::memory_order_seq_cst) == 0) return;
    notifications_.fetch_add(1, std::memory_order_seq_cst);
    futex_wake_all(notifications_);
  }

 private:
  static constexpr std::chrono::hours kLongestSleep{1};

  Polling polling_;
  std::atomic<int> sleepers_{0};
  std::atomic<uint32_t> notifications_{0};
};

}  // namespace cohort::internal
