// Makes numbers of a task known to `cohort cluster status`, now and then.
#pragma once

#include <atomic>
#include <chrono>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "cohort/cluster/cluster_spec.h"
#include "cohort/core/function_ref.h"
#include "cohort/core/program/task_id.h"
#include "cohort/parameter_server/store/named_figures.h"

namespace cohort::internal {

// Thread safety: any thread.
class FigureReporter {
 public:
  FigureReporter(train::ClusterSpec cluster, TaskId self)
      : cluster_(std::move(cluster)), self_(std::move(self)) {}

  // Gives the figures to the server of this task, which is in this process, in place of those
  // before, if the last time was a second ago or more. One that cannot be shown (a variable's name
  // that is no text) is left out.
  void tick(FunctionRef<NamedFigures()> figures);
  // The same at once, of what may be the last change for long.
  void tell(FunctionRef<NamedFigures()> figures);

 private:
  static constexpr std::chrono::seconds kBetween{1};

  const train::ClusterSpec cluster_;
  const TaskId self_;
  std::atomic<std::chrono::steady_clock::time_point> next_{};
  std::mutex mutex_;
  std::vector<std::string> told_;  // guarded by mutex_: the names
};

}  // namespace cohort::internal
