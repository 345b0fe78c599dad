// Writes one block while the next is being filled.
//
//   WriteBehind behind([&](std::string_view block) { ... });
//   ...fill `buffer`...
//   behind.exchange(buffer, filled);     // goes on at once with an empty buffer
//   behind.drain();                      // everything was written
#pragma once

#include <condition_variable>
#include <cstddef>
#include <exception>
#include <functional>
#include <mutex>
#include <string_view>
#include <thread>

#include "cohort/core/files/aligned_buffer.h"

namespace cohort::internal {

// Thread safety: none; `write` runs on a thread of this object's own. What it throws is thrown by
// the next call here, and ends the writing.
class WriteBehind {
 public:
  // Errors: ResourceExhausted (no thread to be had).
  explicit WriteBehind(std::function<void(std::string_view)> write);
  // Waits for the write in progress; a block that waits is dropped.
  ~WriteBehind();
  WriteBehind(const WriteBehind&) = delete;
  WriteBehind& operator=(const WriteBehind&) = delete;

  // Takes a full buffer and leaves an empty one in its place. Waits while the block before is being
  // written: as long as the device takes, like the write itself.
  void exchange(AlignedBuffer& buffer, size_t filled);
  // Waits until all that was handed over is written.
  void drain();

 private:
  void run();
  void wait_until_idle(std::unique_lock<std::mutex>& lock);

  const std::function<void(std::string_view)> write_;
  std::mutex mutex_;
  std::condition_variable changed_;
  AlignedBuffer block_;       // the thread's while filled_ > 0, else guarded by mutex_
  size_t filled_ = 0;         // guarded by mutex_
  bool stopping_ = false;     // guarded by mutex_
  std::exception_ptr error_;  // guarded by mutex_
  std::thread thread_;
};

}  // namespace cohort::internal
