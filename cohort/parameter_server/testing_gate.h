// For tests: holds functions until it is opened.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>

namespace cohort::distribute {

// Thread safety: any thread.
class Gate {
 public:
  void pass() {
    std::unique_lock lock(mutex_);
    ++waiting_;
    changed_.notify_all();
    changed_.wait_for(lock, std::chrono::seconds(30), [this] { return open_; });
    --waiting_;
  }
  // Returns whether so many wait.
  bool wait_for(int functions) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(30), [&] { return waiting_ >= functions; });
  }
  void open() {
    const std::lock_guard lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int waiting_ = 0;
  bool open_ = false;
};

}  // namespace cohort::distribute
