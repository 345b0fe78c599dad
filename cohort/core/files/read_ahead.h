// Reads one block while the one before is worked on.
//
//   ReadAhead ahead([&](char* out, size_t capacity) { return bytes that were read, 0 at the end });
//   for (auto block = ahead.next(); !block.empty(); block = ahead.next()) work_on(block);
#pragma once

#include <cstddef>
#include <functional>
#include <string_view>

#include "cohort/core/files/aligned_buffer.h"
#include "cohort/core/threads/worker_thread.h"

namespace cohort::internal {

// Thread safety: none; `read` runs on a thread of this object's own, with a buffer of
// kBigBufferBytes. What it throws is thrown by next().
class ReadAhead {
 public:
  using Read = std::function<size_t(char* out, size_t capacity)>;

  // Its end waits for the read in progress. Errors: ResourceExhausted (no thread to be had).
  explicit ReadAhead(Read read);

  // The next block, which lives until the next call; empty at the end.
  std::string_view next();

 private:
  void start();

  const Read read_;
  AlignedBuffer current_;
  // The thread's while it reads.
  AlignedBuffer coming_;
  size_t filled_ = 0;
  WorkerThread thread_{"to read ahead with", "cohort/read"};
};

}  // namespace cohort::internal
