// Waiting for what other threads set in atomics, at the price of a few loads where it comes soon.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "cohort/core/host/spin_pause.h"

namespace cohort::internal {

// The predicate reads atomics that somebody sets before calling notify(); with sequentially
// consistent stores no wake-up is lost.
// Thread safety: any thread.
class WaitPoint {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr Clock::time_point kForever = Clock::time_point::max();

  // Spins for up to `spin`, then sleeps, until predicate() or the deadline; returns predicate().
  template <class Predicate>
  bool wait(Predicate predicate, std::chrono::nanoseconds spin, Clock::time_point deadline) {
    if (predicate()) return true;
    if (spin.count() > 0) {
      const auto end = Clock::now() + spin;
      do {
        for (int i = 0; i < 64; ++i) {
          if (predicate()) return true;
          spin_pause();
        }
        // Whom it waits for may have been put on the same core: let it run, instead of keeping the
        // core from it until the spin is over (and let the scheduler see that there are two).
        std::this_thread::yield();
      } while (Clock::now() < end);
    }
    sleepers_.fetch_add(1, std::memory_order_seq_cst);
    std::unique_lock lock(mutex_);
    bool met = false;
    if (deadline == kForever) {
      condition_.wait(lock, predicate);
      met = true;
    } else {
      met = condition_.wait_until(lock, deadline, predicate);
    }
    lock.unlock();
    sleepers_.fetch_sub(1, std::memory_order_relaxed);
    return met;
  }

  // Wakes whoever sleeps. Nothing but a load where nobody does.
  void notify() {
    if (sleepers_.load(std::memory_order_seq_cst) == 0) return;
    { std::lock_guard lock(mutex_); }
    condition_.notify_all();
  }

 private:
  std::atomic<int> sleepers_{0};
  std::mutex mutex_;
  std::condition_variable condition_;
};

}  // namespace cohort::internal
