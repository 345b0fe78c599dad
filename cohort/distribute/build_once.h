// Lazy building inside a step: a layer makes its variables when it first sees an input, and by then
// N replicas run it at once.
#pragma once

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <string_view>
#include <thread>

#include "cohort/core/function_ref.h"

namespace cohort::internal {

// Runs a builder once for all replicas: the first to come builds, as if it stood across replicas
// (variables get all their components), the others wait for it. Which replica that is makes no
// difference to the result: layers are built in the order in which the step uses them, and initial
// values depend on that order alone. A builder that throws leaves it unbuilt; the next replica
// tries again, and fails alike. A builder may call its own BuildOnce again. Thread safety: any
// thread.
class BuildOnce {
 public:
  bool done() const { return done_.load(std::memory_order_acquire); }
  // Returns at once where it was built. `what` names it in errors ("layer 'dense'").
  // Errors: what `build` throws, DeadlineExceeded (another thread builds for 10 minutes).
  void operator()(std::string_view what, FunctionRef<void()> build);

 private:
  // One thread's turn to build. Not a timed mutex: ThreadSanitizer (of clang 14) does not see those
  // of the steady clock being locked.
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
