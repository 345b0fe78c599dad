// Tells whether threads of this process have been kept from their cores of late: by neighbours, by
// each other, or by the host of a virtual machine. It goes by how late the threads were, so that it
// works in containers, too.
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
  // How long cores count as contended after a thread was late. If a thread is late again soon
  // afterwards, the time doubles, because finding out may cost a time slice of the scheduler.
  static constexpr std::chrono::milliseconds kShortest{100};
  static constexpr std::chrono::milliseconds kLongest{1600};

  // Notes that a thread was late by kLate or more.
  void note(Time now);
  // Costs one atomic load.
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
