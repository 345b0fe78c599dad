// Whether threads of this process have been kept from their cores of late: by neighbours, by each other, or by
// the host of a virtual machine. Seen from how late they were, so that it holds in containers, too.
#pragma once

#include <atomic>
#include <chrono>

namespace cohort::internal {

// Thread safety: any thread.
class CoreContention {
 public:
  using Time = std::chrono::steady_clock::time_point;
  // Nothing but another thread on its core delays a thread by this much within a short loop.
  static constexpr std::chrono::microseconds kLate{500};
  // How long cores count as contended after somebody was late. Where somebody is late again soon after
  // that, it is twice as long as the last time: to find out may cost a slice of the scheduler.
  static constexpr std::chrono::milliseconds kShortest{100};
  static constexpr std::chrono::milliseconds kLongest{1600};

  // Somebody was late by kLate or more.
  void note(Time now);
  // A load.
  bool is_contended(Time now) const {
    return now.time_since_epoch().count() < until_.load(std::memory_order_relaxed);
  }

 private:
  // In ticks of the clock. Threads that note at the same time write about the same.
  std::atomic<Time::rep> until_{0};
  std::atomic<Time::rep> hold_{0};
};

// The one of this process.
CoreContention& core_contention();

}  // namespace cohort::internal
