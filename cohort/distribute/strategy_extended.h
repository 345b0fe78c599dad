// For code that must work with any strategy: optimizers, layers, other libraries.
//
//   strategy.extended().update(variable, [](Variable& v, const Tensor& x) { v.assign(x); }, value);
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cohort/core/export.h"
#include "cohort/core/handle.h"
#include "cohort/core/structure.h"
#include "cohort/distribute/values.h"
#include "cohort/distribute/variable.h"

namespace cohort::internal {
class StrategyCore;
}

namespace cohort::distribute {

// While it lives, the calling thread's new variables are kept where another one is.
class COHORT_API [[nodiscard]] ColocationScope {
 public:
  explicit ColocationScope(const Variable& variable);
  ~ColocationScope();
  ColocationScope(const ColocationScope&) = delete;
  ColocationScope& operator=(const ColocationScope&) = delete;

 private:
  class Impl;
  const std::unique_ptr<Impl> impl_;
};

class InputIterator;
struct InputOptions;
class InputWorkers;
class MultiStepContext;

// Thread safety: as Strategy.
class COHORT_API StrategyExtended {
 public:
  explicit StrategyExtended(std::shared_ptr<internal::StrategyCore> core)
      : core_(std::move(core)) {}

  // Canonical names; under parameter servers the parameters' are those of the ps tasks.
  // Errors: FailedPrecondition (the default strategy has none).
  std::vector<std::string> worker_devices() const;
  std::vector<std::string> parameter_devices() const;

  // Reduces across replicas; the result is on every device of `destination`, which does not change.
  // Cross-replica context. Errors: FailedPrecondition, InvalidArgument (as Strategy::reduce).
  Mirrored<Tensor> reduce_to(ReduceOp op, const PerReplica<Tensor>& value,
                             const Variable& destination) const;
  std::vector<Mirrored<Tensor>> batch_reduce_to(
      ReduceOp op, const std::vector<std::pair<PerReplica<Tensor>, Variable>>& pairs) const;

  // Calls fn(component, arguments...) for each distinct component of the variable, in cross-replica
  // context where assign acts on that component alone. Arguments must be equal on all replicas.
  // Errors: FailedPrecondition (in a replica), what fn throws.
  void update(const Variable& variable, const std::function<void(Variable&, const Tensor&)>& fn,
              const Mirrored<Tensor>& argument) const;
  void update(const Variable& variable, const std::function<void(Variable&, const Tensor&)>& fn,
              const Tensor& argument) const;

  bool variable_created_in_scope(const Variable& variable) const;

  // While the result lives, new variables of this thread are kept where `variable` is: on the ps task
  // that keeps it (its first shard), undivided. Strategies without ps tasks keep all variables on
  // the same devices anyway.
  // Errors: InvalidArgument (a variable of another strategy: names it).
  ColocationScope colocate_vars_with(const Variable& variable) const;

  // Whether this task is the one whose checkpoints and summaries count: the first of the sync
  // group. Checkpoint::save and the summaries of a step need no such question: they go by it
  // themselves.
  bool should_checkpoint() const;
  bool should_save_summary() const;
  // Whether several tasks run the same program side by side.
  bool experimental_between_graph() const;
  // Whether all steps must see the same shapes. Never.
  bool experimental_require_static_shapes() const { return false; }

  // Which devices read this process's input, and for which replicas.
  InputWorkers input_workers() const;
  InputWorkers input_workers(const InputOptions& options) const;

  // Calls fn(context, batch) for `iterations` batches, in cross-replica context: see legacy.h. The
  // context's last outputs are initial_loop_values until a step sets others.
  // Errors: OutOfRange (the input ends before), what fn throws.
  MultiStepContext experimental_run_steps_on_iterator(
      const std::function<void(MultiStepContext&, const PerReplica<Structure>&)>& fn,
      InputIterator& input, int iterations = 1,
      const std::map<std::string, PerReplica<Tensor>>& initial_loop_values = {}) const;

 private:
  internal::Handle<internal::StrategyCore, "StrategyExtended"> core_;
};

}  // namespace cohort::distribute
