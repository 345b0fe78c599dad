#include "cohort/distribute/strategy_extended.h"

#include "cohort/core/error.h"
#include "cohort/distribute/colocation.h"
#include "cohort/distribute/context_stack.h"
#include "cohort/distribute/cross_device_ops.h"
#include "cohort/distribute/input_options.h"
#include "cohort/distribute/input_workers.h"
#include "cohort/distribute/local_variable.h"
#include "cohort/distribute/replica_context.h"
#include "cohort/distribute/strategy.h"
#include "cohort/distribute/strategy_core.h"

namespace cohort::distribute {

std::vector<std::string> StrategyExtended::worker_devices() const {
  return core_->worker_devices();
}
std::vector<std::string> StrategyExtended::parameter_devices() const {
  return core_->parameter_devices();
}

Mirrored<Tensor> StrategyExtended::reduce_to(ReduceOp op, const PerReplica<Tensor>& value,
                                             const Variable& destination) const {
  if (core_->cross_device_ops() != nullptr) {
    return batch_reduce_to(op, {{value, destination}})[0];
  }
  const Tensor reduced = Strategy(core_).reduce(op, value);
  const internal::LocalVariable& local = destination.impl().local();
  Mirrored<Tensor>::Values values;
  for (size_t i = 0; i < local.num_copies(); ++i) {
    values.push_back(reduced.to(local.component(i).device()));
  }
  return Mirrored<Tensor>(std::move(values));
}

std::vector<Mirrored<Tensor>> StrategyExtended::batch_reduce_to(
    ReduceOp op, const std::vector<std::pair<PerReplica<Tensor>, Variable>>& pairs) const {
  if (const CrossDeviceOps* ops = core_->cross_device_ops()) {
    internal::require_cross_replica("batch_reduce_to", "ReplicaContext::all_reduce");
    return ops->batch_reduce(op, {pairs.begin(), pairs.end()});
  }
  std::vector<Mirrored<Tensor>> reduced;
  reduced.reserve(pairs.size());
  for (const auto& [value, destination] : pairs) {
    reduced.push_back(reduce_to(op, value, destination));
  }
  return reduced;
}

void StrategyExtended::update(const Variable& variable,
                              const std::function<void(Variable&, const Tensor&)>& fn,
                              const Mirrored<Tensor>& argument) const {
  internal::require_cross_replica("update", "merge_call");
  Variable handle = variable;
  for (const size_t component : variable.impl().local().distinct_components()) {
    internal::ContextGuard guard(*variable.impl().core(), nullptr, static_cast<int>(component));
    fn(handle, argument.value(std::min(component, argument.size() - 1)));
  }
}

void StrategyExtended::update(const Variable& variable,
                              const std::function<void(Variable&, const Tensor&)>& fn,
                              const Tensor& argument) const {
  update(variable, fn, Mirrored<Tensor>({argument}));
}

bool StrategyExtended::variable_created_in_scope(const Variable& variable) const {
  return variable.impl().core() == core_;
}

class ColocationScope::Impl {
 public:
  explicit Impl(const Variable& variable)
      : variable_(variable), scope_(variable.impl(), internal::Colocation::kWhole) {}

 private:
  const Variable variable_;  // the scope refers to it
  const internal::ScopedColocation scope_;
};

ColocationScope::ColocationScope(const Variable& variable)
    : impl_(std::make_unique<Impl>(variable)) {}
ColocationScope::~ColocationScope() = default;

ColocationScope StrategyExtended::colocate_vars_with(const Variable& variable) const {
  if (!variable_created_in_scope(variable)) {
    throw InvalidArgumentError(internal::str("colocate_vars_with: variable '", variable.name(),
                                             "' was made under ", variable.impl().core()->name(),
                                             ", not in the scope of this ", core_->name()));
  }
  return ColocationScope(variable);
}

bool StrategyExtended::should_checkpoint() const { return core_->should_save_summary(); }
bool StrategyExtended::should_save_summary() const { return core_->should_save_summary(); }
bool StrategyExtended::experimental_between_graph() const { return core_->is_between_graph(); }

InputWorkers StrategyExtended::input_workers() const { return input_workers(InputOptions{}); }
InputWorkers StrategyExtended::input_workers(const InputOptions& options) const {
  return core_->input_workers(options);
}

}  // namespace cohort::distribute
