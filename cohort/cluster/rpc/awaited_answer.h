// The answer of a call that a thread waits for.
#pragma once

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <utility>

#include "cohort/cluster/rpc/message.h"

namespace cohort::internal::rpc {

// It may end as soon as take() has returned. Thread safety: any thread.
class AwaitedAnswer {
 public:
  // Once.
  void set(CallResult result) {
    const std::lock_guard lock(mutex_);
    result_ = std::move(result);
    come_.store(true, std::memory_order_release);
    arrival_.notify_one();  // with the lock: who waits may end this right after
  }
  bool has_come() const { return come_.load(std::memory_order_acquire); }
  // Waits for it. Once.
  CallResult take() {
    std::unique_lock lock(mutex_);
    arrival_.wait(lock, [this] { return has_come(); });
    return std::move(result_);
  }

 private:
  std::mutex mutex_;  // guards what follows
  CallResult result_;
  std::atomic<bool> come_{false};
  std::condition_variable arrival_;
};

}  // namespace cohort::internal::rpc
