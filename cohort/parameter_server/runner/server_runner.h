// Runs the steps of fit, evaluate and predict on the workers of a parameter server cluster.
#pragma once

#include <exception>
#include <memory>
#include <set>

#include "cohort/core/threads/synchronized.h"
#include "cohort/distribute/step/step_runner.h"
#include "cohort/parameter_server/runner/loop_table.h"
#include "cohort/parameter_server/runner/program_loops.h"
#include "cohort/parameter_server/runner/server_input.h"

namespace cohort::internal {

// The named function by which workers run steps, and what it does there: it takes the batch of the
// step and returns (whether there was one, the result).
inline constexpr char kRunStep[] = "cohort/step";
Structure run_named_step(const std::shared_ptr<StrategyCore>& strategy, ProgramLoops& loops,
                         const Structure& arguments);

class ServerRunner final : public StepRunner {
 public:
  // `loops`: a part of the strategy.
  ServerRunner(std::shared_ptr<StrategyCore> strategy, ProgramLoops& loops);
  // Gives up what has not ended.
  ~ServerRunner() override;

  void declare(const std::shared_ptr<const StepFunction>& step) override;
  Structure run_loop(FunctionRef<Structure()> loop) override;
  void fail(const std::exception_ptr& error) noexcept override;
  std::future<Structure> schedule(const std::shared_ptr<const StepFunction>& step,
                                  const std::shared_ptr<StepInput>& input) override;
  void join() override;
  std::shared_ptr<StepInput> make_input(const data::Dataset& dataset) override;
  std::shared_ptr<StepInput> make_input(const distribute::DatasetFunction& fn,
                                        const distribute::InputOptions& options) override;
  std::shared_ptr<StepInput> make_input(const distribute::DistributedDataset& dataset) override;

 private:
  // The steps that were scheduled and have not ended; outlives the runner.
  struct UnderWay {
    int64_t steps = 0;
    bool has_failed = false;
  };

  Structure lead(FunctionRef<Structure()> loop);
  Structure follow();
  void leave(const TaskId& self);
  void tell(const std::exception_ptr& error);
  void meet_coordinator(const std::exception_ptr& error);
  CoordinatorCore& coordinator();
  void wait_for_room();
  std::shared_ptr<StepInput> add_input(ServerInput::Source source);

  const std::shared_ptr<StrategyCore> strategy_;
  ProgramLoops& loops_;
  const std::shared_ptr<LoopCall> call_;
  const int64_t number_;                          // of the call's runners
  std::vector<std::weak_ptr<StepInput>> inputs_;  // by their slots
  const std::shared_ptr<Synchronized<UnderWay>> under_way_ =
      std::make_shared<Synchronized<UnderWay>>();
};

}  // namespace cohort::internal
