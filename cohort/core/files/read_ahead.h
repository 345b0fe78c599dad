// Reads one block while the one before is worked on.
//
//   ReadAhead ahead([&](char* out, size_t capacity) { return bytes that were read, 0 at the end });
//   for (auto block = ahead.next(); !block.empty(); block = ahead.next()) work_on(block);
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

// Thread safety: none; `read` runs on a thread of this object's own, with a buffer of
// kBigBufferBytes. What it throws is thrown by next().
class ReadAhead {
 public:
  using Read = std::function<size_t(char* out, size_t capacity)>;

  // Errors: ResourceExhausted (no thread to be had).
  explicit ReadAhead(Read read);
  // Waits for the read in progress.
  ~ReadAhead();
  ReadAhead(const ReadAhead&) = delete;
  ReadAhead& operator=(const ReadAhead&) = delete;

  // The next block, which lives until the next call; empty at the end.
  std::string_view next();

 private:
  void run();

  const Read read_;
  AlignedBuffer current_;
  std::mutex mutex_;
  std::condition_variable changed_;
  AlignedBuffer coming_;      // the thread's while !ready_, else guarded by mutex_
  size_t filled_ = 0;         // guarded by mutex_
  bool ready_ = false;        // coming_ is filled, or reading has ended; guarded by mutex_
  bool ended_ = false;        // guarded by mutex_
  bool stopping_ = false;     // guarded by mutex_
  std::exception_ptr error_;  // guarded by mutex_
  std::thread thread_;
};

}  // namespace cohort::internal
