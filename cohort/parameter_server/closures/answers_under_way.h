// Answers that are given later, by other threads.
#pragma once

#include <condition_variable>
#include <mutex>

namespace cohort::internal {

// Its end waits for them; what they wait for has its deadline. Thread safety: any thread.
class AnswersUnderWay {
 public:
  AnswersUnderWay() = default;
  ~AnswersUnderWay() {
    std::unique_lock lock(mutex_);
    none_.wait(lock, [this] { return count_ == 0; });
  }
  AnswersUnderWay(const AnswersUnderWay&) = delete;
  AnswersUnderWay& operator=(const AnswersUnderWay&) = delete;

  void begin() {
    const std::lock_guard lock(mutex_);
    ++count_;
  }
  void end() {
    const std::lock_guard lock(mutex_);
    if (--count_ == 0) none_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable none_;
  int count_ = 0;  // guarded by mutex_
};

}  // namespace cohort::internal
