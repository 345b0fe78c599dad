// The core of ParameterServerStrategy, in every task of the cluster.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "cohort/distribute/strategies/local_strategy.h"
#include "cohort/parameter_server/closures/worker_side.h"
#include "cohort/parameter_server/cluster/ps_cluster.h"
#include "cohort/parameter_server/coordinator/leader_side.h"
#include "cohort/parameter_server/runner/program_loops.h"
#include "cohort/parameter_server/variables/partitioner.h"
#include "cohort/parameter_server/variables/placement.h"
#include "cohort/parameter_server/variables/released_shards.h"
#include "cohort/parameter_server/variables/variable_host.h"
#include "cohort/train/objects/save_group.h"

namespace cohort::internal {

class ServerCore;
struct ClosureContext;

// Steps run on workers, each on its own replicas; ps tasks keep the variables. Its parts hold what
// a task has: the cluster, what variables share, a worker's side, a leader's side, and the calls of
// fit.
class ParameterServerCore final : public LocalStrategy {
 public:
  struct Setup {
    PsCluster::Setup cluster;
    distribute::partitioners::Partitioner partitioner = nullptr;
    distribute::VariablePlacement placement = distribute::VariablePlacement::ROUND_ROBIN;
    std::vector<std::string> devices;
  };
  static std::shared_ptr<ParameterServerCore> make(Setup setup);
  ~ParameterServerCore() override;

  // The parts, which keep the strategy.
  std::shared_ptr<PsCluster> cluster() { return part(cluster_); }
  std::shared_ptr<VariableHost> variables() { return part(variables_); }
  std::shared_ptr<WorkerSide> worker() { return part(worker_); }
  std::shared_ptr<LeaderSide> leader() { return part(leader_); }

  bool steps_run_elsewhere() const override { return true; }
  bool can_read_variables() const override { return cluster_.can_read_variables(); }
  // The devices of all ps tasks.
  std::vector<std::string> parameter_devices() const override;
  std::unique_ptr<StepRunner> make_runner() override;
  std::shared_ptr<train::SaveGroup> save_group() override { return save_group_; }
  void run(const std::shared_ptr<RunFrame>& frame, const distribute::RunOptions& options) override;
  std::shared_ptr<VariableImpl> create_variable(
      const distribute::VariableSpec& spec,
      const distribute::VariableInitializer& initializer) override;
  std::shared_ptr<VariableImpl> create_variable_on(
      const std::string& device, const distribute::VariableSpec& spec,
      const distribute::VariableInitializer& initializer) override;
  std::unique_ptr<GradientExchange> make_exchange(std::vector<UpdateTarget> targets) override;

 private:
  explicit ParameterServerCore(Setup setup);
  template <class Part>
  std::shared_ptr<Part> part(Part& of_this) {
    return {shared_from_this(), &of_this};
  }
  std::shared_ptr<ReleasedShards> make_released();
  // device: of a ps task; empty: the strategy chooses.
  std::shared_ptr<VariableImpl> make_variable(const std::string& device,
                                              const distribute::VariableSpec& spec,
                                              const distribute::VariableInitializer& initializer);
  int64_t next_id(const std::string& name);
  bool makes_values() const;
  void run_in_closure(const std::shared_ptr<RunFrame>& frame, const distribute::RunOptions& options,
                      ClosureContext& closure);
  void run_and_push(const std::shared_ptr<RunFrame>& frame, const distribute::RunOptions& options);
  ReleasedShards::Progress begun() const;
  ReleasedShards::Progress ended() const;
  // Whether the program has come to what the tasks of the cluster do together.
  bool has_begun() const;
  void end() noexcept;
  void leave_by_exception() noexcept;
  void end_others() noexcept;
  void wait_for_end() noexcept;

  const Setup setup_;
  PsCluster cluster_;
  Placement placement_;
  VariableHost variables_;
  WorkerSide worker_;
  LeaderSide leader_;
  ProgramLoops loops_;
  std::shared_ptr<train::SaveGroup> save_group_;  // of a coordinator
  const int exceptions_;                          // that were under way when it was made
  const std::thread::id maker_ = std::this_thread::get_id();
  std::atomic<bool> has_served_{false};  // in a server of this process

  std::mutex mutex_;
  std::map<std::string, int>
      names_;  // how many variables of each name there are; guarded by mutex_

  // What has begun and ended here, outside of closures.
  std::atomic<uint64_t> steps_begun_{0};
  std::atomic<uint64_t> steps_ended_{0};
  std::shared_ptr<void> attachment_;  // to the servers of this process: the last member
};

}  // namespace cohort::internal
