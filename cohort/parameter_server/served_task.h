// What a task of this process does for the strategies of a program, one after another.
#pragma once

#include <chrono>
#include <memory>

#include "cohort/parameter_server/leadership/coordinator_fence.h"

namespace cohort::internal {

class ParameterServerCore;

// Thread safety: any thread.
class ServedTask {
 public:
  virtual ~ServedTask() = default;
  // Serves this strategy, too. It may end while calls come; it is asked whether it lives.
  virtual void add(const std::weak_ptr<ParameterServerCore>& core) = 0;
  // The coordinator that gave sessions below this one ends: inputs that functions of its program have made go, once
  // what the task does at the moment has ended. Does not wait.
  virtual void drop_inputs_below(SessionId session) = 0;
  // Waits until what the task does for programs at the moment has ended, until `deadline`; returns whether it has.
  virtual bool wait_until_idle(std::chrono::steady_clock::time_point) { return true; }
};

}  // namespace cohort::internal
