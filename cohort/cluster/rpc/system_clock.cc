#include "cohort/cluster/rpc/system_clock.h"

#include <pthread.h>

#include "cohort/core/start_thread.h"

namespace cohort::internal::rpc {

SystemClock::SystemClock() : thread_(start_thread("for timers", [this] { run(); })) {
  ::pthread_setname_np(thread_.native_handle(), "cohort-clock");
}

SystemClock::~SystemClock() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

Clock::TimerId SystemClock::call_at(Time when, std::function<void()> fn) {
  const std::lock_guard lock(mutex_);
  const TimerId id = ++last_id_;
  const bool is_next = timers_.empty() || when < timers_.begin()->first.first;
  timers_.emplace(std::pair(when, id), std::move(fn));
  times_.emplace(id, when);
  if (is_next) changed_.notify_all();
  return id;
}

void SystemClock::cancel(TimerId timer) {
  std::function<void()> dropped;  // destroyed outside of the lock: it may own what cancels timers
  std::unique_lock lock(mutex_);
  if (const auto found = times_.find(timer); found != times_.end()) {
    const auto entry = timers_.find({found->second, timer});
    dropped = std::move(entry->second);
    timers_.erase(entry);
    times_.erase(found);
    return;
  }
  if (std::this_thread::get_id() == thread_.get_id()) return;
  changed_.wait(lock, [&] { return running_ != timer; });
}

void SystemClock::run() {
  std::unique_lock lock(mutex_);
  while (!ends_) {
    if (timers_.empty()) {
      changed_.wait(lock);
      continue;
    }
    const auto next = timers_.begin();
    if (const Time when = next->first.first; when > now()) {
      changed_.wait_until(lock, when);
      continue;
    }
    running_ = next->first.second;
    std::function<void()> fn = std::move(next->second);
    times_.erase(running_);
    timers_.erase(next);
    lock.unlock();
    fn();
    fn = nullptr;
    lock.lock();
    running_ = 0;
    changed_.notify_all();
  }
}

}  // namespace cohort::internal::rpc
