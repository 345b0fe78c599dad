// Lazy building inside a step: a layer creates its variables when it first sees an input, while N
// replicas run it at the same time.
#pragma once

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <string_view>
#include <thread>

#include "cohort/core/function_ref.h"

namespace cohort::internal {

// Runs a builder once for all replicas. The first to arrive builds, as if in cross-replica context
// (variables get all their components); the others wait for it. The result does not depend on which
// replica that is: layers are built in the order in which the step uses them, and initial values
// depend on that order alone. If a builder throws, the object stays unbuilt; the next replica tries
// again, and fails in the same way. A builder may call its own BuildOnce again.
// Thread safety: any thread.
class BuildOnce {
 public:
  bool done() const { return done_.load(std::memory_order_acquire); }
  // Returns at once if it is already built. `what` names it in errors ("layer 'dense'").
  // Errors: what `build` throws, DeadlineExceeded (another thread builds for 10 minutes).
  void operator()(std::string_view what, FunctionRef<void()> build);

 private:
  // One thread's turn to build. Not a timed mutex: ThreadSanitizer (of clang 14) does not notice
  // that one with a steady clock is locked.
  class Turn {
   public:
    Turn(BuildOnce& once, std::string_view what);
    ~Turn();
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

   private:
    BuildOnce& once_;
  };

  std::atomic<bool> done_{false};
  std::mutex mutex_;
  std::condition_variable free_;
  std::thread::id builder_;  // guarded by mutex_
  int depth_ = 0;            // how many of its turns are open; guarded by mutex_
};

}  // namespace cohort::internal
