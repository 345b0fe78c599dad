// How long the collective calls of a piece of code wait, where the program has said so for that
// code.
//
//   const ScopedCallTimeout timeout(std::chrono::seconds(1));
//   const Tensor sum = all_reduce_sum(group, replica, value);  // DeadlineExceeded after a second
#pragma once

#include <chrono>

namespace cohort::collective {

// While it lives, calls of a SyncGroup that its thread makes wait no longer for other replicas and
// tasks, whatever the group's CommunicationOptions say; the step's timeout limits them as well. The
// innermost counts. 0: nothing is said.
class [[nodiscard]] ScopedCallTimeout {
 public:
  explicit ScopedCallTimeout(std::chrono::nanoseconds timeout);
  ~ScopedCallTimeout();
  ScopedCallTimeout(const ScopedCallTimeout&) = delete;
  ScopedCallTimeout& operator=(const ScopedCallTimeout&) = delete;

  // The calling thread's; 0: none.
  static std::chrono::nanoseconds current();

 private:
  const std::chrono::nanoseconds previous_;
};

}  // namespace cohort::collective
