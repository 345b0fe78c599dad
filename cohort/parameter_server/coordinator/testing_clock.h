// For tests: a clock that goes on when it is told to.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <utility>

#include "cohort/cluster/rpc/clock.h"

namespace cohort::internal {

// Thread safety: none.
class HandSetClock final : public rpc::Clock {
 public:
  Time now() const override { return now_; }
  TimerId call_at(Time when, std::function<void()> fn) override {
    timers_.emplace(when, std::move(fn));
    return 0;
  }
  void cancel(TimerId) override {}
  void advance(std::chrono::milliseconds by) {
    const Time end = now_ + by;
    while (!timers_.empty() && timers_.begin()->first <= end) {
      const auto timer = timers_.extract(timers_.begin());
      now_ = timer.key();
      timer.mapped()();
    }
    now_ = end;
  }

 private:
  Time now_{};
  std::multimap<Time, std::function<void()>> timers_;
};

}  // namespace cohort::internal
