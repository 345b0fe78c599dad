// Real time, with one thread for timers.
#pragma once

#include <condition_variable>
#include <map>
#include <mutex>
#include <thread>
#include <utility>

#include "cohort/cluster/rpc/clock.h"

namespace cohort::internal::rpc {

// Thread safety: any thread. A timer's function may set and cancel timers, its own included.
class SystemClock final : public Clock {
 public:
  // Errors: ResourceExhausted (no thread).
  SystemClock();
  // Drops the timers that are left, after the one that runs.
  ~SystemClock() override;
  SystemClock(const SystemClock&) = delete;
  SystemClock& operator=(const SystemClock&) = delete;

  Time now() const override { return std::chrono::steady_clock::now(); }
  TimerId call_at(Time when, std::function<void()> fn) override;
  void cancel(TimerId timer) override;

 private:
  void run();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::pair<Time, TimerId>, std::function<void()>> timers_;
  std::map<TimerId, Time> times_;
  TimerId last_id_ = 0;
  TimerId running_ = 0;  // the timer whose function runs; 0: none
  bool ends_ = false;
  std::thread thread_;
};

}  // namespace cohort::internal::rpc
