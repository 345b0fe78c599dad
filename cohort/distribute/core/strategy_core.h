// What a strategy is to the library, with one subclass per strategy. The rest of Cohort uses this
// interface and never asks for a strategy's name; programs hold a `Strategy`
// (strategies/strategy.h).
#pragma once

#include <atomic>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cohort/collective/communication_options.h"
#include "cohort/collective/sync_group.h"
#include "cohort/core/function_ref.h"
#include "cohort/core/structure/tensor.h"
#include "cohort/distribute/core/input_status.h"
#include "cohort/distribute/core/variable_spec.h"
#include "cohort/distribute/tasks/named_functions.h"

namespace cohort::random {
class RandomGenerator;
}
namespace cohort::train {
class SaveGroup;
}
namespace cohort::distribute::cluster_resolver {
class ClusterResolver;
}
namespace cohort::distribute {
class CrossDeviceOps;
struct InputOptions;
class InputWorkers;
struct RunOptions;
}  // namespace cohort::distribute

namespace cohort::internal {

class GradientExchange;
class RunFrame;
class StepRunner;
class StepTransaction;
class VariableImpl;
struct UpdateTarget;

// Thread safety: immutable except for `run`, which only one thread of a task may call at a time.
class StrategyCore : public std::enable_shared_from_this<StrategyCore>,
                     public collective::GroupRepeater {
 public:
  virtual ~StrategyCore() = default;

  // "MirroredStrategy": for messages only.
  virtual std::string_view name() const = 0;
  // Whether this is the default strategy.
  virtual bool is_default() const { return false; }

  // These describe what the calling thread's task has (core/task.h).
  //
  // The replicas that run steps together. One object per task, until the group forms again: between
  // two steps, or in a call that is COLLECTIVE.
  collective::SyncGroup& group() const override = 0;
  // The same, kept alive: a strategy whose group forms again has another one then.
  virtual std::shared_ptr<collective::SyncGroup> group_pointer() const {
    return {std::shared_ptr<void>(), &group()};
  }
  int num_replicas_in_sync() const { return group().view()->num_replicas(); }
  int num_local_replicas() const { return group().view()->num_local_replicas(); }
  // The id in the sync group of this task's replica `local_id`.
  int replica_id(int local_id) const { return group().view()->first_replica() + local_id; }
  // Canonical names, one per local replica.
  // Errors: FailedPrecondition (a strategy without devices).
  virtual const std::vector<std::string>& worker_devices() const = 0;
  // The devices on which ON_WRITE variables are. Errors: as worker_devices.
  virtual std::vector<std::string> parameter_devices() const { return worker_devices(); }
  // The object with which the program wants values of the replicas reduced; nullptr: the strategy's
  // own way.
  virtual const distribute::CrossDeviceOps* cross_device_ops() const { return nullptr; }
  // How its tasks exchange values, where a call does not say otherwise.
  virtual distribute::experimental::CommunicationOptions communication_options() const {
    return {};
  }

  // The resolver by which the strategy has learnt which tasks there are; nullptr if it has not
  // asked.
  virtual std::shared_ptr<const distribute::cluster_resolver::ClusterResolver> cluster_resolver()
      const {
    return nullptr;
  }
  // Whether several tasks run the same program side by side.
  virtual bool is_between_graph() const { return group().spans_tasks(); }
  // Whether this task is the one that writes for all: the first of the sync group.
  virtual bool should_save_summary() const { return group().view()->task == 0; }

  // The generators from which the local replicas draw in a step; the same ones at each call.
  virtual std::vector<random::RandomGenerator> replica_generators() = 0;

  // See Strategy::run.
  virtual void run(const std::shared_ptr<RunFrame>& frame,
                   const distribute::RunOptions& options) = 0;

  // Makes the object through which a training loop runs steps.
  virtual std::unique_ptr<StepRunner> make_runner() = 0;

  // Decides by `spec`, which must be complete, where the values are, and runs the initializer
  // there, once per shard (make_initial_value). Called in a context in which variables may be
  // created: not in a replica of this strategy.
  // Errors: InvalidArgument (a synchronization that the strategy does not support), as
  // make_initial_value.
  virtual std::shared_ptr<VariableImpl> create_variable(
      const distribute::VariableSpec& spec, const distribute::VariableInitializer& initializer) = 0;
  // The same on the ps task of this name ("/job:ps/task:1").
  // Errors: also InvalidArgument (the strategy has no ps tasks, or none of this name).
  virtual std::shared_ptr<VariableImpl> create_variable_on(
      const std::string& device, const distribute::VariableSpec& spec,
      const distribute::VariableInitializer& initializer);

  // Makes the exchange through which gradients of these variables go in a step, for the group as it
  // is now. The targets were made under this strategy.
  virtual std::unique_ptr<GradientExchange> make_exchange(std::vector<UpdateTarget> targets) = 0;

  // Whether these are values of the replicas of all tasks: they are here where replicas move.
  bool are_of_all_replicas(size_t values) const {
    return transaction() != nullptr && values == static_cast<size_t>(num_replicas_in_sync());
  }
  // These three combine the values of all replicas of the sync group; this task passes those of its
  // own replicas, in order, or of all, and then makes no call of the group. `name` says what is
  // combined; tasks that pass different ones get an error.
  // COLLECTIVE over the tasks of the group. Not from a replica.
  // Errors: those of a Communicator's calls.
  //
  // The sum, on the CPU: in replica order within a task and then in the order of tasks, or in the
  // order of the group's tree.
  Tensor sum_over_replicas(at::ArrayRef<Tensor> local_values, std::string_view name = "sum") const;
  // Concatenated along `axis`, on the CPU.
  Tensor gather_over_replicas(at::ArrayRef<Tensor> local_values, int64_t axis,
                              std::string_view name = "gather") const;
  // The value of replica 0.
  Tensor value_of_first_replica(at::ArrayRef<Tensor> local_values,
                                std::string_view name = "replica 0's value") const;

  // The devices that read the input of this process's replicas. By default the host CPU of the
  // first device reads for all, or each replica has a worker of its own (PER_REPLICA).
  virtual distribute::InputWorkers input_workers(const distribute::InputOptions& options) const;
  // The input workers of the sync group that read a dataset which all tasks distribute.
  struct InputPipelines {
    int total = 1;
    int first = 0;                // the number of this task's first
    std::vector<int> each = {1};  // the number of each task's
    int64_t dataset = 0;          // by which the tasks know the dataset
  };
  // COLLECTIVE, as above.
  InputPipelines input_pipelines(int local_workers);
  // Whether other tasks of the sync group read their own input for the same steps. They then read
  // one step ahead.
  virtual bool input_is_shared() const { return group().spans_tasks(); }
  // COLLECTIVE; called only if input is shared. Returns what all tasks together have for a step.
  // Every task asks once for every step of an iterator, in the same order, whatever its own input
  // does. It asks early, usually before the previous step is run, so that a cluster can send the
  // status along with a reduction of that step. The returned function waits for the answer.
  // Errors: FailedPrecondition (another task reads another step; names both), also of the answer;
  // those of the group's calls.
  virtual InputAnswer agree_on_input(const InputStatus& here, const InputPlace& place);

  // The tasks of the sync group as a group that saves and restores together; the same object at
  // each call. nullptr for a task that is alone. See train::Trackable::save_group.
  virtual std::shared_ptr<train::SaveGroup> save_group() { return nullptr; }

  // What makes steps change everything or nothing, where replicas move to other tasks when theirs
  // is lost; else null.
  virtual StepTransaction* transaction() const { return nullptr; }
  // See SyncGroup::repeatable; for calls outside of steps. It may make others, which are then part
  // of it.
  std::string repeatable(FunctionRef<std::string()> call) override { return call(); }

  // How many calls all tasks have made together, the same on each at one place of the program;
  // missing where none of them joins later.
  virtual std::optional<int64_t> calls_together() const { return std::nullopt; }
  // See SaveGroup. COLLECTIVE over the tasks. Errors: those of the forming; of `restore`.
  virtual void admit(FunctionRef<void()>) {}
  virtual bool join(FunctionRef<void()>) { return false; }

  // Notes the error of a failed call of this task, of which other tasks may not know. If the
  // strategy ends before another step begins, they get this error.
  virtual void note_failure(const std::exception_ptr&) noexcept {}

  // Whether other tasks, which run the same program, take the steps. An object that owns variables
  // then makes them when it is made itself, so that every task has them in one order.
  virtual bool steps_run_elsewhere() const { return false; }
  // Whether the calling code can read variables. It cannot in a task that is to take others' steps,
  // before it serves, nor in one that only keeps them.
  virtual bool can_read_variables() const { return true; }

  // The functions of the strategy that other tasks may call.
  distribute::NamedFunctions& named_functions() { return named_functions_; }

 protected:
  // The sum of the values of this task's replicas, in their order, on the CPU.
  virtual Tensor sum_of_local(at::ArrayRef<Tensor> local_values) const;

 private:
  distribute::NamedFunctions named_functions_;
  std::atomic<int64_t> datasets_{0};  // the number of the last that was distributed
};

// The strategy that is current outside of every scope; made by default_strategy.cc.
const std::shared_ptr<StrategyCore>& default_core();

}  // namespace cohort::internal
