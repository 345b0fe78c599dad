// What workers of this process do with the program's functions, which may refer to its own objects:
// the end of a coordinator, after which these may end, waits for it.
//
//   const auto use = functions.begin({.session = session, .worker = 0, .function = "step"});
//   functions.refuse_below(next);                        // the coordinator ends
//   auto left = functions.wait_for_end(next, deadline);  // "worker 0 runs 'step' (for 1.2 s)"
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "cohort/core/program/process.h"
#include "cohort/parameter_server/leadership/coordinator_fence.h"

namespace cohort::internal {

// Thread safety: any thread.
class FunctionsInUse {
 public:
  using Clock = std::chrono::steady_clock;
  struct Use {
    SessionId session = 0;
    int worker = 0;
    const char* does = "runs";
    std::string function = "";
  };

  FunctionsInUse();

  // The function is in use as long as the result lives, which may outlive this. Errors: Cancelled
  // (the session's coordinator has ended).
  [[nodiscard]] std::shared_ptr<void> begin(Use use);
  // None of a session below begins any more.
  void refuse_below(SessionId session);
  // Waits until no use of a session below is left. Returns those that are left at the deadline;
  // empty: none. In a child of fork, which has none of the threads, it does not wait.
  std::string wait_for_end(SessionId below, Clock::time_point deadline) const;

 private:
  struct State;
  const HomeProcess home_;
  const std::shared_ptr<State> state_;
};

}  // namespace cohort::internal
