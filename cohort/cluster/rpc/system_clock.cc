#include "cohort/cluster/rpc/system_clock.h"

#include <pthread.h>

#include <condition_variable>
#include <map>
#include <mutex>
#include <utility>

#include "cohort/core/program/start_thread.h"

namespace cohort::internal::rpc {

struct SystemClock::State {
  std::mutex mutex;  // guards what follows
  std::condition_variable changed;
  std::map<std::pair<Time, TimerId>, std::function<void()>> timers;
  std::map<TimerId, Time> times;
  TimerId last_id = 0;
  TimerId running = 0;  // the timer whose function runs; 0: none
  bool ends = false;
};

SystemClock::SystemClock()
    : state_(std::make_shared<State>()),
      thread_(start_thread("for timers", [state = state_] { run(*state); })) {
  ::pthread_setname_np(thread_.native_handle(), "cohort-clock");
}

SystemClock::~SystemClock() {
  {
    const std::lock_guard lock(state_->mutex);
    state_->ends = true;
  }
  state_->changed.notify_all();
  if (std::this_thread::get_id() == thread_.get_id()) {
    thread_.detach();
  } else {
    thread_.join();
  }
}

Clock::TimerId SystemClock::call_at(Time when, std::function<void()> fn) {
  State& state = *state_;
  const std::lock_guard lock(state.mutex);
  const TimerId id = ++state.last_id;
  const bool is_next = state.timers.empty() || when < state.timers.begin()->first.first;
  state.timers.emplace(std::pair(when, id), std::move(fn));
  state.times.emplace(id, when);
  if (is_next) state.changed.notify_all();
  return id;
}

void SystemClock::cancel(TimerId timer) {
  State& state = *state_;
  std::function<void()> dropped;  // destroyed outside of the lock: it may own what cancels timers
  std::unique_lock lock(state.mutex);
  if (const auto found = state.times.find(timer); found != state.times.end()) {
    const auto entry = state.timers.find({found->second, timer});
    dropped = std::move(entry->second);
    state.timers.erase(entry);
    state.times.erase(found);
    return;
  }
  if (std::this_thread::get_id() == thread_.get_id()) return;
  state.changed.wait(lock, [&] { return state.running != timer; });
}

void SystemClock::run(State& state) {
  std::unique_lock lock(state.mutex);
  while (!state.ends) {
    if (state.timers.empty()) {
      state.changed.wait(lock);
      continue;
    }
    const auto next = state.timers.begin();
    if (const Time when = next->first.first; when > std::chrono::steady_clock::now()) {
      state.changed.wait_until(lock, when);
      continue;
    }
    state.running = next->first.second;
    std::function<void()> fn = std::move(next->second);
    state.times.erase(state.running);
    state.timers.erase(next);
    lock.unlock();
    fn();
    fn = nullptr;
    lock.lock();
    state.running = 0;
    state.changed.notify_all();
  }
}

}  // namespace cohort::internal::rpc
