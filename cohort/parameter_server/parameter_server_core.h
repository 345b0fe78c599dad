// The core of ParameterServerStrategy, in every task of the cluster.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "cohort/cluster/channel_pool.h"
#include "cohort/cluster/cluster_spec.h"
#include "cohort/cluster/server.h"
#include "cohort/core/per_task.h"
#include "cohort/distribute/input_context.h"
#include "cohort/distribute/local_strategy.h"
#include "cohort/parameter_server/partitioner.h"
#include "cohort/parameter_server/served_variable.h"
#include "cohort/parameter_server/store/store_client.h"
#include "cohort/parameter_server/task_step.h"

namespace cohort::distribute {
class DistributedIterator;
}

namespace cohort::internal {

class ServerCore;

// Which part this process has. In an in-process cluster the program is the coordinator, and threads of
// the servers act for workers (core/task.h).
enum class ClusterRole { kCoordinator, kWorker, kPs, kEvaluator };

// Makes the iterator of one worker's input.
using MakeWorkerInput = std::function<std::unique_ptr<distribute::DistributedIterator>(
    const distribute::InputContext&)>;

// Steps run on workers, each on its own replicas; ps tasks keep the variables.
class ParameterServerCore final : public LocalStrategy {
 public:
  struct Setup {
    train::ClusterSpec cluster;
    ClusterRole role = ClusterRole::kCoordinator;
    distribute::partitioners::Partitioner partitioner = nullptr;
    std::chrono::milliseconds timeout = std::chrono::minutes(1);  // of a call to a ps task
    // The coordinator's own server, where it has one.
    std::shared_ptr<distribute::Server> server = nullptr;
    std::vector<std::string> devices;
  };
  static std::shared_ptr<ParameterServerCore> make(Setup setup);
  ~ParameterServerCore() override;

  const train::ClusterSpec& cluster() const { return setup_.cluster; }
  ClusterRole role() const { return setup_.role; }
  int num_workers() const { return num_workers_; }
  bool steps_run_elsewhere() const override { return true; }

  // The coordinator's channel to a task. Errors: FailedPrecondition (its address is not known).
  std::shared_ptr<rpc::Channel> channel(const TaskId& task) const;

  // Of the calling thread's task.
  const StoreClient& store() const { return store_; }
  TaskStep& step() const { return steps_.get(); }

  // For a coordinator, of which there is one at a time: the number of its first closure, above all
  // that earlier ones of this cluster have used, in this program or before it was started again. ps
  // tasks apply what a number brings once.
  // Errors: FailedPrecondition (there is a coordinator).
  uint64_t begin_closures();
  void end_closures(uint64_t next);

  // The functions that make workers' inputs, by name, the same in every task.
  // Errors: AlreadyExists; NotFound.
  void add_input(const std::string& name, MakeWorkerInput make);
  MakeWorkerInput input(const std::string& name) const;

  void run(const std::shared_ptr<RunFrame>& frame, const distribute::RunOptions& options) override;
  std::shared_ptr<VariableImpl> create_variable(
      const distribute::VariableSpec& spec,
      const distribute::VariableInitializer& initializer) override;
  std::unique_ptr<GradientExchange> make_exchange(std::vector<UpdateTarget> targets) override;

 private:
  explicit ParameterServerCore(Setup setup);
  std::shared_ptr<ParameterServerCore> self() {
    return std::static_pointer_cast<ParameterServerCore>(shared_from_this());
  }
  void serve(ServerCore& server);
  std::vector<ServedVariable::Shard> place(const distribute::VariableSpec& spec, int64_t id);
  int64_t next_id(const std::string& name);
  bool makes_values() const;
  void end_others() noexcept;

  const Setup setup_;
  const int num_workers_;
  std::unique_ptr<ChannelPool> channels_;  // of a coordinator without a server
  StoreClient store_;
  PerTask<TaskStep> steps_;
  const int exceptions_;  // that were under way when it was made

  mutable std::mutex mutex_;          // guards what follows
  std::map<std::string, int> names_;  // how many variables of each name there are
  int next_ps_ = 0;
  bool has_coordinator_ = false;
  uint64_t next_closure_ = 0;
  std::map<std::string, MakeWorkerInput> inputs_;

  std::shared_ptr<void> attachment_;  // to the servers of this process: the last member
};

}  // namespace cohort::internal
