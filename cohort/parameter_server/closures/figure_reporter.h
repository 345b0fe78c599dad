// Makes numbers of a task known to `cohort cluster status`, now and then.
#pragma once

#include <atomic>
#include <chrono>
#include <string>
#include <utility>

#include "cohort/core/function_ref.h"
#include "cohort/core/task_id.h"

namespace cohort::internal {

// Thread safety: any thread.
class FigureReporter {
 public:
  explicit FigureReporter(TaskId self) : self_(std::move(self)) {}

  // Where the last time was a second ago or more: `tell` names figures to the server of this task, which
  // is in this process.
  using Set = FunctionRef<void(const std::string& name, double value)>;
  void tick(FunctionRef<void(Set set)> tell);

 private:
  const TaskId self_;
  std::atomic<std::chrono::steady_clock::time_point> next_{};
};

}  // namespace cohort::internal
