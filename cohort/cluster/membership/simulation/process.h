// Time and processes of a simulation: everything happens on one thread, in the order of a queue.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "cohort/cluster/rpc/clock.h"

namespace cohort::internal::membership {

// The time of the world. Thread safety: none.
class SimulatedTime {
 public:
  using Time = std::chrono::nanoseconds;  // since the beginning

  Time now() const { return now_; }
  uint64_t at(Time when, std::function<void()> event);
  uint64_t after(Time delay, std::function<void()> event) {
    return at(now_ + delay, std::move(event));
  }
  void cancel(uint64_t event);
  // Lets happen what is due until then.
  void run_until(Time end);
  uint64_t events() const { return last_id_; }

 private:
  Time now_{0};
  uint64_t last_id_ = 0;
  std::map<std::pair<Time, uint64_t>, std::function<void()>> queue_;
  std::map<uint64_t, Time> times_;
};

// A process has a clock of its own, which may run a little fast or slow. While it is stopped
// nothing happens in it, but nothing is lost; when it has ended nothing more happens. It must
// outlive the events of its time. Thread safety: none.
class SimulatedProcess final : public rpc::Clock {
 public:
  // `rate`: how fast its clock runs; `offset`: what it shows at the beginning.
  SimulatedProcess(SimulatedTime& time, double rate, std::chrono::nanoseconds offset)
      : time_(time), rate_(rate), offset_(offset) {}

  Time now() const override;
  TimerId call_at(Time when, std::function<void()> fn) override;
  void cancel(TimerId timer) override { time_.cancel(timer); }

  // Runs `fn` in this process: now, when it goes on, or never.
  void deliver(std::function<void()> fn);
  void stop() { stopped_ = true; }
  void go_on();
  void end() { ended_ = true; }
  bool ended() const { return ended_; }
  bool stopped() const { return stopped_; }
  bool runs() const { return !ended_ && !stopped_; }

 private:
  SimulatedTime& time_;
  const double rate_;
  const std::chrono::nanoseconds offset_;
  bool stopped_ = false;
  bool ended_ = false;
  std::vector<std::function<void()>> kept_;
};

}  // namespace cohort::internal::membership
