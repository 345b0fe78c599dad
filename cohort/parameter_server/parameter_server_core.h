// The core of ParameterServerStrategy, in every task of the cluster.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "cohort/cluster/channel_pool.h"
#include "cohort/cluster/cluster_spec.h"
#include "cohort/cluster/server.h"
#include "cohort/core/function_ref.h"
#include "cohort/core/program/per_task.h"
#include "cohort/core/structure/structure_call.h"
#include "cohort/distribute/input/input_context.h"
#include "cohort/distribute/strategies/local_strategy.h"
#include "cohort/parameter_server/closures/functions_in_use.h"
#include "cohort/parameter_server/cluster/told_failures.h"
#include "cohort/parameter_server/coordinator/coordinator_numbers.h"
#include "cohort/parameter_server/leadership/coordinator_fence.h"
#include "cohort/parameter_server/runner/published_calls.h"
#include "cohort/parameter_server/store/store_client.h"
#include "cohort/parameter_server/variables/partitioner.h"
#include "cohort/parameter_server/variables/placement.h"
#include "cohort/parameter_server/variables/released_shards.h"
#include "cohort/parameter_server/variables/served_variable.h"
#include "cohort/parameter_server/variables/task_step.h"
#include "cohort/train/objects/remote_values.h"
#include "cohort/train/objects/save_group.h"

namespace cohort::distribute {
class DistributedDataset;
}

namespace cohort::internal {

class ClosureQueue;
class CoordinatorCore;
class LoopTable;
class ServerCore;
struct ClosureContext;

// The part that this process has. In an in-process cluster the program is the coordinator, and
// threads of the servers act for workers (core/task.h).
enum class ClusterRole { kCoordinator, kWorker, kPs, kEvaluator };

// Makes one worker's input.
using MakeWorkerInput =
    std::function<distribute::DistributedDataset(const distribute::InputContext&)>;

// Steps run on workers, each on its own replicas; ps tasks keep the variables.
class ParameterServerCore final : public LocalStrategy {
 public:
  struct Setup {
    train::ClusterSpec cluster;
    ClusterRole role = ClusterRole::kCoordinator;
    distribute::partitioners::Partitioner partitioner = nullptr;
    distribute::VariablePlacement placement = distribute::VariablePlacement::ROUND_ROBIN;
    std::chrono::milliseconds timeout = std::chrono::minutes(1);  // of a call to a ps task
    // The keepalive time of a coordinator without a server.
    std::chrono::milliseconds keepalive_time{10'000};
    std::chrono::milliseconds keepalive_timeout{10'000};
    // The coordinator's own server, where it has one.
    std::shared_ptr<distribute::Server> server = nullptr;
    // What tasks have told it of their failures; null where it has no server.
    std::shared_ptr<const ToldFailures> told = nullptr;
    // The task that this process is, and how it serves, if it is a worker or a ps task.
    TaskId self = {};
    distribute::ServerOptions server_options = {};
    std::vector<std::string> devices;
  };
  static std::shared_ptr<ParameterServerCore> make(Setup setup);
  ~ParameterServerCore() override;

  const train::ClusterSpec& cluster() const { return setup_.cluster; }
  ClusterRole role() const { return setup_.role; }
  int num_workers() const { return num_workers_; }
  // Whether what the calling code assigns outside of steps counts. Every task runs the same program:
  // what it assigns between steps, the coordinator assigns.
  bool writes_outside_steps() const;
  bool steps_run_elsewhere() const override { return true; }
  bool can_read_variables() const override;
  // The devices of all ps tasks.
  std::vector<std::string> parameter_devices() const override;

  // The coordinator's channel to a task. Errors: FailedPrecondition (its address is not known).
  std::shared_ptr<rpc::Channel> channel(const TaskId& task) const;

  // What this program's calls of fit, evaluate and predict have declared.
  LoopTable& loops() const { return *loops_; }
  PublishedCalls& published() { return published_; }
  std::unique_ptr<StepRunner> make_runner() override;
  // For the dataset function of worker `worker`.
  distribute::InputContext input_context(int worker) const;
  // The chief's; nullptr where the cluster is in this process.
  distribute::Coordination* coordination() const;
  // A worker's or ps task's, which it starts with the first call.
  // Errors: those of Server.
  distribute::Server& own_server();
  // Whether this task's program has come to a call of fit, evaluate or predict.
  bool has_own_server() const { return has_own_server_; }
  // Whether no coordinator will let this task go, so that its end need not wait for that.
  void set_left_alone(bool value) { is_left_alone_ = value; }
  // Whether the coordinator knows what is about to end this task's program.
  void set_failure_known(bool value) { is_failure_known_ = value; }
  // What another task has told this one, the coordinator, of its failure, which is waited for at most so long;
  // empty: nothing.
  std::string failure_told_by(const TaskId& task, std::chrono::milliseconds wait = {}) const;

  // The store as the calling thread's task sees it, whose own pushes have been applied. Errors:
  // those of a push of the closure that runs.
  const StoreClient& store() const {
    step().settle();
    return store_;
  }
  int num_ps() const { return store_.num_ps(); }
  TaskStep& step() const { return steps_.get(); }

  // Takes the ps tasks, unless this coordinator has them already. Its generation is higher than that of
  // any coordinator before; what those have left on the ps tasks is gone then. Generations follow the clock of the wall,
  // since workers may remember one that ps tasks, started again, do not.
  // Errors: Unavailable (a ps task cannot be reached; names it).
  void lead();
  // The generation of this coordinator; 0: it does not lead yet.
  int64_t generation() const { return generation_; }
  // Sets the session of the closure that the current task, a worker, runs.
  void set_session(SessionId session) { sessions_.get().store(session); }
  // In which the calling task works: as a worker that of its closure, else the coordinator's.
  SessionId session() const;

  // The latest checkpoint of variables of this strategy that was saved or restored; empty: none.
  std::string last_checkpoint() const;
  void set_last_checkpoint(const std::string& path);
  std::shared_ptr<train::SaveGroup> save_group() override { return save_group_; }
  const std::shared_ptr<train::RemoteKeeper>& part_keeper() const { return part_keeper_; }
  // The one that is at work, if one is.
  std::shared_ptr<CoordinatorCore> coordinator() const;
  // It is at work until end_closures, which comes before its end.
  void set_coordinator(const std::shared_ptr<CoordinatorCore>& coordinator);
  // The program's coordinator, which `make` makes if there is none. The last of the pointers stops
  // it. Errors: those of `make`.
  std::shared_ptr<CoordinatorCore> share_coordinator(
      FunctionRef<std::shared_ptr<CoordinatorCore>()> make);

  // Makes a number of the coordinator known to `cohort cluster status`; null where it has no server.
  std::function<void(const std::string&, double)> figures() const;

  // For a coordinator, of which there is one at a time: its first numbers. Those of closures are above all that
  // earlier ones of this cluster have used, in this program or before it was started again: ps tasks apply what a
  // number brings once.
  // Errors: FailedPrecondition (there is a coordinator).
  CoordinatorNumbers begin_closures();
  void end_closures(const CoordinatorNumbers& next);

  // The functions that make workers' inputs, by name, the same in every task.
  // Errors: AlreadyExists; NotFound.
  void add_input(const std::string& name, MakeWorkerInput make);
  MakeWorkerInput input(const std::string& name) const;
  // Holds the function of a name that new_input_name has given: it goes with the last of these,
  // which do not hold the strategy. Null for other names, which tasks declare for as long as the
  // strategy lives.
  std::shared_ptr<const void> hold_input(const std::string& name);

  // Functions over the program's own objects, for workers of this process. Returns the name by which
  // they find it. Errors: FailedPrecondition (the workers are other processes).
  std::string keep_captured_function(StructureFunction<> function);
  void drop_captured_function(const std::string& name);
  // An empty one where there is none.
  StructureFunction<> captured_function(const std::string& name) const;
  // Errors: FailedPrecondition (the workers are other processes; says what cannot travel to them).
  void require_workers_here(const std::string& what) const;
  bool workers_are_here() const;
  // The functions of this program that workers of this process run.
  FunctionsInUse& functions_in_use() { return functions_in_use_; }
  // Lets those of sessions below begin no more, and the inputs go that they have made. Waits until they have ended.
  // Returns who still uses which at the deadline; empty: nobody.
  std::string end_functions(SessionId below, std::chrono::steady_clock::time_point deadline);
  // A name that no other input of this strategy has.
  std::string new_input_name();

  // The shards of a variable that has ended. At the coordinator ps tasks free them when nothing uses them any more,
  // elsewhere nothing happens: what a worker's program lets go of others may use. Does not wait.
  void release(ReleasedShards::Shards shards);

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
  std::shared_ptr<ParameterServerCore> self() {
    return std::static_pointer_cast<ParameterServerCore>(shared_from_this());
  }
  void serve(ServerCore& server);
  // device: of a ps task; empty: the strategy chooses.
  std::shared_ptr<VariableImpl> make_variable(const std::string& device,
                                              const distribute::VariableSpec& spec,
                                              const distribute::VariableInitializer& initializer);
  std::exception_ptr explained(const std::exception_ptr& error) const;
  bool is_silent(int ps) const;
  // Returns the highest generation that a ps task had or has; where it is not below `generation`, that task was not taken.
  int64_t take_all(int64_t generation) const;
  int64_t next_id(const std::string& name);
  bool makes_values() const;
  void run_in_closure(const std::shared_ptr<RunFrame>& frame, const distribute::RunOptions& options,
                      ClosureContext& closure);
  void run_and_push(const std::shared_ptr<RunFrame>& frame, const distribute::RunOptions& options);
  ReleasedShards::Progress begun() const;
  ReleasedShards::Progress ended() const;
  // Whether the program has come to what the tasks of the cluster do together.
  bool has_begun() const;
  void leave_by_exception() noexcept;
  void end_others() noexcept;
  void wait_for_end() noexcept;

  const Setup setup_;
  const int num_workers_;
  std::unique_ptr<ChannelPool> channels_;  // of a coordinator without a server
  StoreClient store_;
  Placement placement_;
  PerTask<TaskStep> steps_;
  PerTask<std::atomic<SessionId>> sessions_;
  std::shared_ptr<train::SaveGroup> save_group_;  // of a coordinator
  std::shared_ptr<train::RemoteKeeper> part_keeper_;
  std::mutex lead_mutex_;  // held while it takes the ps tasks
  std::atomic<int64_t> generation_{0};
  const LeaderOrigin origin_;
  const int exceptions_;  // that were under way when it was made

  std::mutex shared_mutex_;                // held while the program's coordinator is made
  std::weak_ptr<CoordinatorCore> shared_;  // guarded by shared_mutex_

  mutable std::mutex mutex_;          // guards what follows
  std::map<std::string, int> names_;  // how many variables of each name there are
  bool has_coordinator_ = false;
  std::weak_ptr<CoordinatorCore> coordinator_;
  std::string last_checkpoint_;
  CoordinatorNumbers next_{.closure = 0};  // 0: there has been no coordinator
  std::map<std::string, MakeWorkerInput> inputs_;
  std::atomic<bool> has_own_server_{false};  // set before it answers
  std::atomic<bool> has_served_{false};      // in a server of this process
  const std::thread::id maker_ = std::this_thread::get_id();
  std::atomic<bool> coordinator_left_by_exception_{false};
  std::atomic<bool> is_left_alone_{false};
  std::atomic<bool> is_failure_known_{false};
  std::unique_ptr<distribute::Server> own_server_;
  FunctionsInUse functions_in_use_;
  std::map<std::string, StructureFunction<>> captured_;
  uint64_t last_captured_ = 0;
  uint64_t last_input_ = 0;
  std::set<std::string> unnamed_inputs_;  // that nobody holds yet

  // What has begun and ended, for variables that end, with whatever lock held: who has last_mutex_ takes no other one.
  std::atomic<uint64_t> steps_begun_{0};  // here, outside of closures
  std::atomic<uint64_t> steps_ended_{0};
  mutable std::mutex last_mutex_;
  // The closures of the coordinator that is at work. Changed with mutex_ and last_mutex_ held, read
  // with either.
  const ClosureQueue* closures_ = nullptr;
  std::shared_ptr<ReleasedShards> released_;  // of a coordinator
  const std::unique_ptr<LoopTable> loops_;
  PublishedCalls published_;
  std::shared_ptr<void> attachment_;  // to the servers of this process: the last member
};

}  // namespace cohort::internal
