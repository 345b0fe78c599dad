// Durations by name, which monitoring::timings returns.
//
//   static TimeHistogram& times = time_histogram("closure_execution");
//   const TimedScope timed(times);
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "cohort/core/observe/monitoring.h"

namespace cohort::internal {

// Thread safety: any thread; `add` takes no lock.
class TimeHistogram {
 public:
  void add(std::chrono::nanoseconds duration);
  monitoring::Timing read(const std::string& name) const;

 private:
  std::array<std::atomic<int64_t>, monitoring::Timing::kBounds.size() + 1> intervals_{};
  std::atomic<int64_t> nanoseconds_{0};
};

// The one of this name, which stays for the life of the process. Takes a lock: ask once.
TimeHistogram& time_histogram(std::string_view name);

// Adds its own lifetime, also where it ends by an error.
class TimedScope {
 public:
  explicit TimedScope(TimeHistogram& histogram) : histogram_(histogram) {}
  ~TimedScope() { histogram_.add(std::chrono::steady_clock::now() - began_); }
  TimedScope(const TimedScope&) = delete;
  TimedScope& operator=(const TimedScope&) = delete;

 private:
  TimeHistogram& histogram_;
  const std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
};

}  // namespace cohort::internal
