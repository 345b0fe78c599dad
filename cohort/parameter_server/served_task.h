// What a task of this process does for the strategies of a program, one after another.
#pragma once

#include <memory>

namespace cohort::internal {

class ParameterServerCore;

// Thread safety: any thread.
class ServedTask {
 public:
  virtual ~ServedTask() = default;
  // Serves this strategy, too. It may end while calls come; it is asked whether it lives.
  virtual void add(const std::weak_ptr<ParameterServerCore>& core) = 0;
};

}  // namespace cohort::internal
