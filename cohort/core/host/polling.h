// Polls, for a bounded time, for what another thread is about to do.
#pragma once

#include <atomic>
#include <chrono>
#include <thread>
#include <utility>

#include "cohort/core/host/core_contention.h"
#include "cohort/core/host/spin_pause.h"

namespace cohort::internal {

// A place where threads wait.
//
// A thread yields between two looks: the thread for which it waits may have been put on the same
// core, and the scheduler then sees that there are two. It does not yield while cores are
// contended, because a yield gives the neighbour a whole time slice of some milliseconds. The
// thread for which it waits may then be without a core for as long. So after a few polls in vain,
// only one wait of 16 polls; the others sleep at once.
// Thread safety: any thread.
class Polling {
 public:
  using Clock = std::chrono::steady_clock;
  using Yield = void (*)() noexcept;

  explicit Polling(CoreContention& contention = core_contention(),
                   Yield yield = std::this_thread::yield)
      : contention_(contention), yield_(yield) {}

  // Polls until predicate() is true, for about `limit` at most; returns predicate(). If that is
  // false, the caller sleeps.
  template <class Predicate>
  bool poll(Predicate predicate, std::chrono::nanoseconds limit) {
    if (predicate()) return true;
    if (limit.count() <= 0) return false;
    Clock::time_point now = Clock::now();
    const Clock::time_point end = now + limit;
    bool contended = contention_.is_contended(now);
    if (contended && is_left_out()) return false;
    do {
      for (int i = 0; i < 64; ++i) {
        if (predicate()) {
          in_vain_.store(0, std::memory_order_relaxed);
          return true;
        }
        spin_pause();
      }
      if (!contended) yield_();
      const Clock::time_point before = std::exchange(now, Clock::now());
      if (now - before >= CoreContention::kLate) {
        contention_.note(now);
        contended = true;
      }
    } while (now < end);
    if (predicate()) return true;
    if (contended) was_in_vain();
    return false;
  }

 private:
  static constexpr int kEnough = 4;  // in vain, one after another
  static constexpr int kLeftOut = 15;

  bool is_left_out() {
    const int left = left_out_.load(std::memory_order_relaxed);
    if (left == 0) return false;
    left_out_.store(left - 1, std::memory_order_relaxed);
    return true;
  }
  void was_in_vain() {
    const int in_vain = in_vain_.load(std::memory_order_relaxed) + 1;
    in_vain_.store(in_vain, std::memory_order_relaxed);
    if (in_vain >= kEnough) left_out_.store(kLeftOut, std::memory_order_relaxed);
  }

  CoreContention& contention_;
  const Yield yield_;
  // Threads that poll here at the same time may overwrite each other's counts; only the time that a
  // wait takes depends on them.
  std::atomic<int> in_vain_{0};
  std::atomic<int> left_out_{0};
};

}  // namespace cohort::internal
