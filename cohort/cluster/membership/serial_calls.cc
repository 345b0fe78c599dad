#include "cohort/cluster/membership/serial_calls.h"

#include <utility>

namespace cohort::internal::membership {

void SerialCalls::add(std::function<void()> call) {
  const std::lock_guard lock(mutex_);
  if (!stopped_) calls_.push_back(std::move(call));
}

void SerialCalls::run() {
  std::unique_lock lock(mutex_);
  if (runner_ != std::thread::id()) return;
  runner_ = std::this_thread::get_id();
  while (!calls_.empty()) {
    const std::function<void()> call = std::move(calls_.front());
    calls_.pop_front();
    lock.unlock();
    try {
      call();
    } catch (...) {  // a callback's error has nowhere to go
    }
    lock.lock();
  }
  runner_ = std::thread::id();
  idle_.notify_all();
}

void SerialCalls::stop() {
  std::unique_lock lock(mutex_);
  stopped_ = true;
  calls_.clear();
  idle_.wait(lock,
             [&] { return runner_ == std::thread::id() || runner_ == std::this_thread::get_id(); });
}

bool SerialCalls::runs_here() const {
  const std::lock_guard lock(mutex_);
  return runner_ == std::this_thread::get_id();
}

}  // namespace cohort::internal::membership
