// The base of strategies whose replicas run in step, each on a device: replicas of one task, or of
// several that exchange values. Subclasses differ in their devices, their communicator and their
// name.
#pragma once

#include "cohort/core/program/per_task.h"
#include "cohort/distribute/core/strategy_core.h"
#include "cohort/distribute/strategies/local_replicas.h"

namespace cohort::internal {

// One replica per device of this task; variables are mirrored over all replicas, or there is one
// copy of each for all.
//
// Several tasks of one process may use one strategy, as the servers of an in-process cluster do.
// Each has replicas of its own, on its own names of the same devices, with their own threads, and
// runs its own steps: all of them may run one at the same time. Random numbers depend on the
// strategy's seed, the task's index and the replica's id in its sync group; no two replicas draw
// the same. A variable belongs to the task that made it: a step of another one gets a
// FailedPreconditionError. A strategy with a communicator serves one task.
class LocalStrategy : public StrategyCore {
 public:
  struct Config {
    std::string name;
    // Canonical, existing, not empty; one twice only where sums are by a tree.
    std::vector<std::string> devices;
    // Whether replicas that share memory share one storage of each mirrored variable.
    bool shared_storage = true;
    // Canonical: where the one copy of each ON_WRITE variable is. Empty: such variables are
    // mirrored.
    std::string parameter_device = "";
    // The object with which a program wants values of the replicas reduced; null: the strategy's
    // own way.
    std::shared_ptr<const distribute::CrossDeviceOps> cross_device_ops = nullptr;
    // To the other tasks; null if there are none.
    std::shared_ptr<collective::Communicator> communicator = nullptr;
    // How values travel over it, where a call does not say otherwise.
    distribute::experimental::CommunicationOptions communication_options = {};
    // How many cores its replicas divide; 0: all that this process may use.
    int cores = 0;
    // See LocalReplicas::Options.
    int threads_per_replica = 0;
    collective::SyncGroup::Order order = collective::SyncGroup::Order::kOfRanks;
  };
  // COLLECTIVE over the tasks. Errors: those of a Communicator's calls.
  explicit LocalStrategy(Config config);

  std::string_view name() const override { return config_.name; }
  collective::SyncGroup& group() const override { return replicas().group(); }
  std::shared_ptr<collective::SyncGroup> group_pointer() const override {
    return replicas().group_pointer();
  }
  const std::vector<std::string>& worker_devices() const override { return replicas().devices(); }
  std::vector<std::string> parameter_devices() const override;
  const distribute::CrossDeviceOps* cross_device_ops() const override {
    return config_.cross_device_ops.get();
  }
  distribute::experimental::CommunicationOptions communication_options() const override {
    return config_.communication_options;
  }
  std::vector<random::RandomGenerator> replica_generators() override;
  void run(const std::shared_ptr<RunFrame>& frame, const distribute::RunOptions& options) override;
  std::shared_ptr<VariableImpl> create_variable(
      const distribute::VariableSpec& spec,
      const distribute::VariableInitializer& initializer) override;
  std::unique_ptr<GradientExchange> make_exchange(std::vector<UpdateTarget> targets) override;
  std::unique_ptr<StepRunner> make_runner() override;
  std::shared_ptr<train::SaveGroup> save_group() override { return save_group_; }

 protected:
  // Puts other replicas, of a group that has formed again, into the place of this task's, and
  // returns those. Not while a step runs.
  std::unique_ptr<LocalReplicas> replace_replicas(
      std::vector<std::string> devices, std::shared_ptr<collective::Communicator> communicator,
      int cores);
  StrategyGenerators& all_generators() const { return *generators_; }

 private:
  Tensor sum_of_local(at::ArrayRef<Tensor> local_values) const override;
  // The current task's. Errors: FailedPrecondition (a task that the communicator does not serve).
  LocalReplicas& replicas() const { return *replicas_.get(); }
  std::unique_ptr<LocalReplicas> make_replicas() const;
  std::string own_name(const std::string& device) const;

  Config config_;
  const Task& maker_;
  const std::shared_ptr<StrategyGenerators> generators_;
  PerTask<std::unique_ptr<LocalReplicas>> replicas_;
  std::shared_ptr<train::SaveGroup> save_group_;  // nullptr: this task is alone
};

}  // namespace cohort::internal
