// Real time, with one thread for timers.
#pragma once

#include <memory>
#include <thread>

#include "cohort/cluster/rpc/clock.h"

namespace cohort::internal::rpc {

// Thread safety: any thread. A timer's function may set and cancel timers, its own included.
class SystemClock final : public Clock {
 public:
  // Errors: ResourceExhausted (no thread).
  SystemClock();
  // Drops the timers that are left, after the one that runs. From a timer's own function it returns
  // at once, and that one is the last.
  ~SystemClock() override;
  SystemClock(const SystemClock&) = delete;
  SystemClock& operator=(const SystemClock&) = delete;

  Time now() const override { return std::chrono::steady_clock::now(); }
  TimerId call_at(Time when, std::function<void()> fn) override;
  void cancel(TimerId timer) override;

 private:
  struct State;
  static void run(State& state);

  const std::shared_ptr<State> state_;  // the thread's, too
  std::thread thread_;
};

}  // namespace cohort::internal::rpc
