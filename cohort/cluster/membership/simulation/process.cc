#include "cohort/cluster/membership/simulation/process.h"

#include <algorithm>
#include <cmath>

namespace cohort::internal::membership {

uint64_t SimulatedTime::at(Time when, std::function<void()> event) {
  const Time time = std::max(when, now_);
  queue_.emplace(std::pair(time, ++last_id_), std::move(event));
  times_.emplace(last_id_, time);
  return last_id_;
}

void SimulatedTime::cancel(uint64_t event) {
  const auto found = times_.find(event);
  if (found == times_.end()) return;
  queue_.erase({found->second, event});
  times_.erase(found);
}

void SimulatedTime::run_until(Time end) {
  while (!queue_.empty() && queue_.begin()->first.first <= end) {
    const auto first = queue_.begin();
    now_ = first->first.first;
    const std::function<void()> event = std::move(first->second);
    times_.erase(first->first.second);
    queue_.erase(first);
    event();
  }
  now_ = std::max(now_, end);
}

rpc::Clock::Time SimulatedProcess::now() const {
  const auto shown = static_cast<int64_t>(static_cast<double>(time_.now().count()) * rate_);
  return Time(offset_ + std::chrono::nanoseconds(shown));
}

rpc::Clock::TimerId SimulatedProcess::call_at(Time when, std::function<void()> fn) {
  const auto shown = static_cast<double>((when.time_since_epoch() - offset_).count());
  // Never early: one more than rounding takes away.
  const std::chrono::nanoseconds due(static_cast<int64_t>(std::ceil(shown / rate_)) + 2);
  return time_.at(due, [this, fn = std::move(fn)] { deliver(fn); });
}

void SimulatedProcess::deliver(std::function<void()> fn) {
  if (ended_) return;
  if (stopped_) {
    kept_.push_back(std::move(fn));
  } else {
    fn();
  }
}

void SimulatedProcess::go_on() {
  stopped_ = false;
  // One after another, as the threads of a process would: what happens may stop or end it again.
  std::vector<std::function<void()>> kept = std::move(kept_);
  kept_.clear();
  for (auto& fn : kept) deliver(std::move(fn));
}

}  // namespace cohort::internal::membership
