// The base of strategies whose replicas run in step, each on a device: replicas of one task, or of
// several that exchange values. Subclasses differ in their devices, their communicator and their
// name.
#pragma once

#include "cohort/distribute/local_replicas.h"
#include "cohort/distribute/strategy.h"
#include "cohort/distribute/strategy_core.h"

namespace cohort::internal {

// One replica per device of this task; variables are mirrored over all replicas.
class LocalStrategy : public StrategyCore {
 public:
  struct Config {
    std::string name;
    std::vector<std::string> devices;  // canonical, existing, not empty, no device twice
    // Whether replicas that share memory share one storage of each mirrored variable.
    bool shared_storage = true;
    // To the other tasks; null if there are none.
    std::shared_ptr<collective::Communicator> communicator = nullptr;
  };
  // COLLECTIVE over the tasks. Errors: those of a Communicator's calls.
  explicit LocalStrategy(Config config);

  std::string_view name() const override { return config_.name; }
  collective::SyncGroup& group() const override { return replicas_.group(); }
  const std::vector<std::string>& worker_devices() const override { return replicas_.devices(); }
  std::vector<random::RandomGenerator> replica_generators() override;
  void run(const std::shared_ptr<RunFrame>& frame, const distribute::RunOptions& options) override;
  std::shared_ptr<VariableImpl> create_variable(
      const distribute::VariableSpec& spec,
      const distribute::VariableInitializer& initializer) override;
  std::unique_ptr<GradientExchange> make_exchange(std::vector<UpdateTarget> targets) override;
  std::shared_ptr<train::SaveGroup> save_group() override { return save_group_; }

 private:
  Config config_;
  LocalReplicas replicas_;
  std::shared_ptr<train::SaveGroup> save_group_;  // nullptr: this task is alone
};

}  // namespace cohort::internal
