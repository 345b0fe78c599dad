// What a strategy is made of, behind the handle `Strategy`. One subclass a strategy; everything else
// in Cohort asks this interface, and never for a strategy's name.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cohort/distribute/input_status.h"
#include "cohort/distribute/strategy.h"

namespace cohort::random {
class RandomGenerator;
}

namespace cohort::internal {

class VariableImpl;

// Thread safety: immutable but for `run`, which is for one thread at a time.
class StrategyCore : public std::enable_shared_from_this<StrategyCore> {
 public:
  virtual ~StrategyCore() = default;

  // "MirroredStrategy": for messages only.
  virtual std::string_view name() const = 0;
  // The strategy that is current where no other is.
  virtual bool is_default() const { return false; }

  virtual int num_replicas_in_sync() const = 0;
  virtual int num_local_replicas() const = 0;
  // The id in the sync group of this process's replica `local_id`.
  virtual int replica_id(int local_id) const = 0;
  // Canonical names, one a local replica. Errors: FailedPrecondition (a strategy without devices).
  virtual const std::vector<std::string>& worker_devices() const = 0;

  // What the local replicas draw from in a step; the same ones at each call.
  virtual std::vector<random::RandomGenerator> replica_generators() = 0;

  // See Strategy::run.
  virtual void run(const std::shared_ptr<RunFrame>& frame,
                   const distribute::RunOptions& options) = 0;

  // Called in a context where variables may be made: not in a replica of this strategy.
  virtual std::shared_ptr<VariableImpl> create_variable(const Tensor& initial_value,
                                                        distribute::VariableOptions options) = 0;

  // The sum over all replicas of the sync group of local components, in replica order, on the CPU.
  virtual Tensor sum_over_replicas(at::ArrayRef<Tensor> local_components) = 0;
  virtual Tensor gather_over_replicas(at::ArrayRef<Tensor> local_components, int64_t axis) = 0;

  // Who reads the input of this process's replicas. By default the host CPU of the first device
  // does for all, or each replica has a worker of its own (PER_REPLICA).
  virtual distribute::InputWorkers input_workers(const distribute::InputOptions& options) const;
  // Of the sync group's input workers: how many there are, and the number of this process's first.
  struct InputPipelines {
    int total = 1;
    int first = 0;
  };
  virtual InputPipelines input_pipelines(int local_workers) const { return {local_workers, 0}; }
  // Whether other processes of the sync group read input of their own for the same steps. They then
  // read a step ahead.
  virtual bool input_is_shared() const { return false; }
  // COLLECTIVE, and only called, where input is shared: what all processes together have for a
  // step. Every process asks once for every step of an iterator, in the same order, whatever its
  // own input does; and it asks early, as a rule when the step before is still to be run, so that a
  // cluster can send the status along with a reduction of that step. What it returns waits for the
  // answer. Errors (of the answer): what the group fails with.
  virtual InputAnswer agree_on_input(const InputStatus& here) {
    return [here] { return here; };
  }
};

// The strategy of get_strategy() outside of every scope.
const std::shared_ptr<StrategyCore>& default_core();
// The default strategy's only replica.
distribute::ReplicaContext& default_replica_context();

}  // namespace cohort::internal
