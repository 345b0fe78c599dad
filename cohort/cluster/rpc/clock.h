// Time, as the protocols of a cluster see it: real, or a simulation's.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>

namespace cohort::internal::rpc {

// Monotonic, so that a step of the wall clock ends nobody. Thread safety: any thread.
class Clock {
 public:
  using Time = std::chrono::steady_clock::time_point;
  using TimerId = uint64_t;

  virtual ~Clock() = default;
  virtual Time now() const = 0;
  // Calls `fn` once `when` has come, on a thread of the clock's; it does not block.
  virtual TimerId call_at(Time when, std::function<void()> fn) = 0;
  // After it returns, the timer's function neither runs nor will run.
  virtual void cancel(TimerId timer) = 0;
};

}  // namespace cohort::internal::rpc
