// Calls to user code from many threads, one at a time and in order.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace cohort::internal::membership {

// Thread safety: any thread.
class SerialCalls {
 public:
  // To be called by run(), of this or another thread. Callers that hold a lock may add.
  void add(std::function<void()> call);
  // Makes the calls that are waiting, unless another thread is making them. No lock may be held.
  void run();
  // Drops the calls that are waiting, and waits for the call under way unless this thread makes it.
  void stop();
  // Whether this thread is in one of the calls.
  bool runs_here() const;

 private:
  mutable std::mutex mutex_;
  std::condition_variable idle_;
  std::deque<std::function<void()>> calls_;
  std::thread::id runner_;
  bool stopped_ = false;
};

}  // namespace cohort::internal::membership
