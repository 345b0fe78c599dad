// The clock of this host, with a thread that calls timers.
#pragma once

#include <condition_variable>
#include <map>
#include <mutex>
#include <thread>
#include <utility>

#include "cohort/cluster/rpc/clock.h"

namespace cohort::internal::rpc {

// Thread safety: any thread; a timer's function may call it, too.
class RealClock : public Clock {
 public:
  RealClock();
  // Timers that are still to come are dropped.
  ~RealClock() override;

  Time now() const override { return std::chrono::steady_clock::now(); }
  TimerId call_at(Time when, std::function<void()> fn) override;
  // From within the timer's own function it returns at once.
  void cancel(TimerId timer) override;

 private:
  using Key = std::pair<Time, TimerId>;
  void run();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::condition_variable finished_;
  std::map<Key, std::function<void()>> timers_;
  std::map<TimerId, Time> times_;
  TimerId next_ = 1;
  TimerId running_ = 0;
  bool end_ = false;
  std::thread thread_;
};

}  // namespace cohort::internal::rpc
