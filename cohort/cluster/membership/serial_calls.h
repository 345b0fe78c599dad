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
  // Calls what there is, unless another thread is at it. No lock may be held.
  void run();
  // Drops what has not been called, and waits for the call under way unless it is this thread's.
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
