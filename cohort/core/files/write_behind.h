// Writes one block while the next is being filled.
//
//   WriteBehind behind([&](std::string_view block) { ... });
//   ...fill `buffer`...
//   behind.exchange(buffer, filled);     // goes on at once with an empty buffer
//   behind.drain();                      // everything was written
#pragma once

#include <cstddef>
#include <functional>
#include <string_view>

#include "cohort/core/files/aligned_buffer.h"
#include "cohort/core/threads/worker_thread.h"

namespace cohort::internal {

// Thread safety: none; `write` runs on a thread of this object's own. What it throws is thrown by
// the next call here, and ends the writing.
class WriteBehind {
 public:
  // Its end waits for the write in progress. Errors: ResourceExhausted (no thread to be had).
  explicit WriteBehind(std::function<void(std::string_view)> write);

  // Takes a full buffer and leaves an empty one in its place. Waits while the block before is being
  // written: as long as the device takes, like the write itself.
  void exchange(AlignedBuffer& buffer, size_t filled);
  // Waits until all that was handed over is written.
  void drain() { thread_.wait(); }

 private:
  const std::function<void(std::string_view)> write_;
  AlignedBuffer block_;  // the thread's while it writes
  WorkerThread thread_{"to write files with", "cohort/write"};
};

}  // namespace cohort::internal
