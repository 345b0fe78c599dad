#include "cohort/cluster/rpc/real_clock.h"

#include <pthread.h>

namespace cohort::internal::rpc {

RealClock::RealClock() : thread_([this] { run(); }) {}

RealClock::~RealClock() {
  {
    const std::lock_guard lock(mutex_);
    end_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

Clock::TimerId RealClock::call_at(Time when, std::function<void()> fn) {
  const std::lock_guard lock(mutex_);
  const TimerId timer = next_++;
  const bool is_first = timers_.empty() || when < timers_.begin()->first.first;
  timers_.emplace(Key{when, timer}, std::move(fn));
  times_.emplace(timer, when);
  if (is_first) changed_.notify_all();
  return timer;
}

void RealClock::cancel(TimerId timer) {
  std::function<void()> dropped;  // destroyed without the lock: it may own what cancels others
  std::unique_lock lock(mutex_);
  if (const auto found = times_.find(timer); found != times_.end()) {
    const auto entry = timers_.find({found->second, timer});
    dropped = std::move(entry->second);
    timers_.erase(entry);
    times_.erase(found);
  } else if (std::this_thread::get_id() != thread_.get_id()) {
    finished_.wait(lock, [&] { return running_ != timer; });
  }
  lock.unlock();
}

void RealClock::run() {
  ::pthread_setname_np(::pthread_self(), "cohort-clock");
  std::unique_lock lock(mutex_);
  while (!end_) {
    if (timers_.empty()) {
      changed_.wait(lock);
      continue;
    }
    const auto first = timers_.begin();
    if (now() < first->first.first) {
      changed_.wait_until(lock, Time(first->first.first));
      continue;
    }
    running_ = first->first.second;
    std::function<void()> fn = std::move(first->second);
    times_.erase(running_);
    timers_.erase(first);
    lock.unlock();
    fn();
    fn = nullptr;
    lock.lock();
    running_ = 0;
    finished_.notify_all();
  }
}

}  // namespace cohort::internal::rpc
