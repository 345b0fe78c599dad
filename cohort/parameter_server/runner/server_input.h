// The coordinator's view of an input that workers read by themselves.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>

#include "cohort/distribute/core/strategy_core.h"
#include "cohort/distribute/input/distributed_dataset.h"
#include "cohort/distribute/step/step_runner.h"
#include "cohort/parameter_server/runner/loop_table.h"

namespace cohort::internal {

// Thread safety: as StepInput; what a step has found: any thread.
class ServerInput final : public StepInput {
 public:
  struct Source {
    // In the calling task.
    WorkerInput::MakeDataset make;
    // Whether the coordinator gives every step the number of its batch; else each worker reads what
    // it has made to its end.
    bool is_numbered = true;
    // Whether no worker's data end.
    bool is_endless = false;
  };
  // What the steps of one pass have found.
  struct Pass {
    std::atomic<bool> has_ended{false};
  };

  // Workers find it under the call's `key`.
  // `context`: that of worker 0.
  ServerInput(std::shared_ptr<const StrategyCore> strategy, const distribute::InputContext& context,
              std::shared_ptr<LoopCall> call, const LoopTable::InputKey& key, Source source);
  ~ServerInput() override;

  bool has_next() override;
  void restart() override;
  int64_t cardinality() const override;
  StructureSpec element_spec() const override { return dataset_.element_spec().component; }
  bool knows_end() const override;
  Structure example() const override;

  const StrategyCore* strategy() const { return strategy_.get(); }
  const LoopTable::InputKey& key() const { return key_; }
  // For the next step.
  BatchPlace take();
  const std::shared_ptr<Pass>& found() const { return found_; }

  bool has_checkpoint_values() const override { return true; }
  std::vector<train::CheckpointValue> checkpoint_values() override;
  void prepare_restore(train::RestoreSource& source) override;

 private:
  // The position at the beginning of the pass.
  const std::string& start();

  const std::shared_ptr<const StrategyCore> strategy_;  // whose table `call_` uses
  const std::shared_ptr<LoopCall> call_;
  const LoopTable::InputKey key_;
  const Source source_;
  const distribute::DistributedDataset dataset_;  // the coordinator's own, which it does not read
  int64_t pass_ = 0;
  int64_t next_ = 0;  // the number of the next step's batch
  std::optional<std::string> start_;
  std::shared_ptr<Pass> found_ = std::make_shared<Pass>();
};

}  // namespace cohort::internal
