// What a strategy is made of, behind the handle `Strategy`. One subclass a strategy; everything else
// in Cohort asks this interface, and never for a strategy's name.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cohort/collective/sync_group.h"
#include "cohort/core/tensor.h"
#include "cohort/distribute/input_status.h"
#include "cohort/distribute/variable_spec.h"

namespace cohort::random {
class RandomGenerator;
}
namespace cohort::train {
class SaveGroup;
}
namespace cohort::distribute {
struct InputOptions;
class InputWorkers;
class ReplicaContext;
struct RunOptions;
}  // namespace cohort::distribute

namespace cohort::internal {

class GradientExchange;
class RunFrame;
class StepRunner;
class VariableImpl;
struct UpdateTarget;

// Thread safety: immutable but for `run`, which is for one thread at a time.
class StrategyCore : public std::enable_shared_from_this<StrategyCore> {
 public:
  virtual ~StrategyCore() = default;

  // "MirroredStrategy": for messages only.
  virtual std::string_view name() const = 0;
  // The strategy that is current where no other is.
  virtual bool is_default() const { return false; }

  // The replicas that run steps together. Never changes its address.
  virtual collective::SyncGroup& group() const = 0;
  int num_replicas_in_sync() const { return group().view()->num_replicas(); }
  int num_local_replicas() const { return group().view()->num_local_replicas(); }
  // The id in the sync group of this task's replica `local_id`.
  int replica_id(int local_id) const { return group().view()->first_replica() + local_id; }
  // Canonical names, one a local replica. Errors: FailedPrecondition (a strategy without devices).
  virtual const std::vector<std::string>& worker_devices() const = 0;

  // What the local replicas draw from in a step; the same ones at each call.
  virtual std::vector<random::RandomGenerator> replica_generators() = 0;

  // See Strategy::run.
  virtual void run(const std::shared_ptr<RunFrame>& frame,
                   const distribute::RunOptions& options) = 0;

  // How a training loop has its steps run: here at once, on the calling thread's time.
  virtual std::unique_ptr<StepRunner> make_runner();

  // Decides by `spec`, which leaves nothing open, where the values are, and runs the initializer
  // there: once for each shard (make_initial_value).
  // Called in a context where variables may be made: not in a replica of this strategy.
  // Errors: InvalidArgument (a synchronization that the strategy has not), as make_initial_value.
  virtual std::shared_ptr<VariableImpl> create_variable(
      const distribute::VariableSpec& spec, const distribute::VariableInitializer& initializer) = 0;

  // What gradients of these variables go through in a step: the strategy applies them. For the
  // group as it is now. The targets were made under this strategy.
  virtual std::unique_ptr<GradientExchange> make_exchange(std::vector<UpdateTarget> targets) = 0;

  // Of the values that all replicas of the sync group have; this task brings its own, in order.
  // COLLECTIVE over the tasks of the group, as are all that follow here. Not from a replica.
  // Errors: those of a Communicator's calls.
  //
  // Their sum, in replica order within a task and then in the order of tasks, on the CPU.
  Tensor sum_over_replicas(at::ArrayRef<Tensor> local_values) const;
  // One after another along `axis`, on the CPU.
  Tensor gather_over_replicas(at::ArrayRef<Tensor> local_values, int64_t axis) const;
  // Replica 0's.
  Tensor value_of_first_replica(at::ArrayRef<Tensor> local_values) const;

  // Who reads the input of this process's replicas. By default the host CPU of the first device
  // does for all, or each replica has a worker of its own (PER_REPLICA).
  virtual distribute::InputWorkers input_workers(const distribute::InputOptions& options) const;
  // Of the sync group's input workers: how many there are, and the number of this task's first.
  struct InputPipelines {
    int total = 1;
    int first = 0;
  };
  InputPipelines input_pipelines(int local_workers) const;
  // Whether other tasks of the sync group read input of their own for the same steps. They then
  // read a step ahead.
  virtual bool input_is_shared() const { return group().spans_tasks(); }
  // COLLECTIVE, and only called, where input is shared: what all tasks together have for a step.
  // Every task asks once for every step of an iterator, in the same order, whatever its own input
  // does; and it asks early, as a rule when the step before is still to be run, so that a cluster
  // can send the status along with a reduction of that step. What it returns waits for the answer.
  // Errors (of the answer): what the group fails with.
  virtual InputAnswer agree_on_input(const InputStatus& here);

  // The tasks of the sync group, as they save and restore together: the same object at each call.
  // nullptr for a task that is alone. See train::Trackable::save_group.
  virtual std::shared_ptr<train::SaveGroup> save_group() { return nullptr; }
};

// The strategy of get_strategy() outside of every scope.
const std::shared_ptr<StrategyCore>& default_core();
// The default strategy's only replica.
distribute::ReplicaContext& default_replica_context();

}  // namespace cohort::internal
