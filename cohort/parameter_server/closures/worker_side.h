// What workers of this process do for a strategy: they run its functions, in the sessions of its
// coordinator.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <utility>

#include "cohort/core/structure/structure.h"
#include "cohort/distribute/core/strategy_core.h"
#include "cohort/distribute/input/input_context.h"
#include "cohort/parameter_server/closures/function_table.h"
#include "cohort/parameter_server/cluster/ps_cluster.h"
#include "cohort/parameter_server/variables/variable_host.h"

namespace cohort::internal {

// A part of the strategy. Thread safety: any thread.
class WorkerSide {
 public:
  // Waits until the program has come to where steps may run. Errors: Unavailable (it has not).
  using WaitForProgram = std::function<void(std::chrono::steady_clock::time_point deadline)>;

  WorkerSide(StrategyCore& strategy, VariableHost& variables, WaitForProgram wait_for_program)
      : strategy_(strategy),
        variables_(variables),
        functions_(variables.cluster()),
        wait_for_program_(std::move(wait_for_program)) {}

  PsCluster& cluster() const { return variables_.cluster(); }
  FunctionTable& functions() { return functions_; }
  const FunctionTable& functions() const { return functions_; }
  // What the current task's step, the last one or the one that runs, has changed.
  TaskStep& step() const { return variables_.step(); }
  int num_local_replicas() const { return strategy_.num_local_replicas(); }

  void wait_for_program(std::chrono::steady_clock::time_point deadline) const {
    wait_for_program_(deadline);
  }
  // Errors: those of the function; NotFound.
  Structure call(const std::string& function, const Structure& arguments) const;
  // For the dataset function of worker `worker`.
  distribute::InputContext input_context(int worker) const;

 private:
  StrategyCore& strategy_;
  VariableHost& variables_;
  FunctionTable functions_;
  const WaitForProgram wait_for_program_;
};

}  // namespace cohort::internal
