// Notices when two threads use an object at once that belongs to one thread at a time. Costs one
// atomic exchange.
//
//   const ExclusiveUse::Hold hold(use_, "a dataset's iterator");
#pragma once

#include <atomic>

#include "cohort/core/error.h"

namespace cohort::internal {

class ExclusiveUse {
 public:
  // Errors: FailedPrecondition (the object is in use already, by another thread or by a function
  // that this thread is in). The other use is not disturbed.
  class [[nodiscard]] Hold {
   public:
    Hold(ExclusiveUse& use, const char* what) : use_(use) {
      if (use.held_.exchange(true, std::memory_order_acquire)) throw_in_use(what);
    }
    ~Hold() { use_.held_.store(false, std::memory_order_release); }
    Hold(const Hold&) = delete;
    Hold& operator=(const Hold&) = delete;

   private:
    [[noreturn]] static void throw_in_use(const char* what) {
      throw FailedPreconditionError(
          str(what,
              " was used while it is in use already, by another thread or by a function "
              "that it calls; give each thread one of its own, or use a lock"));
    }

    ExclusiveUse& use_;
  };

 private:
  std::atomic<bool> held_{false};
};

}  // namespace cohort::internal
