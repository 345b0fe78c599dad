#include "cohort/distribute/strategies/strategy_extended.h"

#include <numeric>

#include "cohort/core/error.h"
#include "cohort/distribute/core/communication_scope.h"
#include "cohort/distribute/core/context_stack.h"
#include "cohort/distribute/core/input_options.h"
#include "cohort/distribute/core/input_workers.h"
#include "cohort/distribute/core/replica.h"
#include "cohort/distribute/core/strategy_core.h"
#include "cohort/distribute/reduce/reduce_replicas.h"
#include "cohort/distribute/values/rows_together.h"
#include "cohort/distribute/variables/colocation.h"
#include "cohort/distribute/variables/local_variable.h"

namespace cohort::distribute {

using experimental::CommunicationOptions;

std::vector<std::string> StrategyExtended::worker_devices() const {
  return core_->worker_devices();
}
std::vector<std::string> StrategyExtended::parameter_devices() const {
  return core_->parameter_devices();
}

Mirrored<Tensor> StrategyExtended::reduce_to(ReduceOp op, const PerReplica<Tensor>& value,
                                             const Destinations& destinations,
                                             const CommunicationOptions& options) const {
  return batch_reduce_to(op, ReplicasPairs{{value, destinations}}, options)[0];
}

Mirrored<Tensor> StrategyExtended::reduce_to(ReduceOp op, const Mirrored<Tensor>& value,
                                             const Destinations& destinations,
                                             const CommunicationOptions& options) const {
  const internal::CommunicationScope communication(*core_, options);
  return CrossDeviceOps::broadcast(internal::reduce_replicas(*core_, op, value), destinations);
}

Mirrored<Tensor> StrategyExtended::reduce_to(ReduceOp op, const Tensor& value,
                                             const Destinations& destinations,
                                             const CommunicationOptions& options) const {
  const internal::CommunicationScope communication(*core_, options);
  return CrossDeviceOps::broadcast(internal::reduce_replicas(*core_, op, value), destinations);
}

Mirrored<IndexedSlices> StrategyExtended::reduce_to(ReduceOp op,
                                                    const PerReplica<IndexedSlices>& value,
                                                    const Destinations& destinations,
                                                    const CommunicationOptions& options) const {
  internal::require_cross_replica("reduce_to", "ReplicaContext::all_reduce");
  const internal::CommunicationScope communication(*core_, options);
  if (const CrossDeviceOps* ops = core_->cross_device_ops()) {
    return ops->reduce(op, value, destinations);
  }
  const auto join = [&](const PerReplica<Tensor>& parts) {
    return internal::gather_replicas(*core_, parts, 0);
  };
  return CrossDeviceOps::broadcast(
      internal::rows_together(op, value, core_->num_replicas_in_sync(), join), destinations);
}

std::vector<Mirrored<Tensor>> StrategyExtended::batch_reduce_to(
    ReduceOp op, const ReplicasPairs& pairs, const CommunicationOptions& options) const {
  internal::require_cross_replica("batch_reduce_to", "ReplicaContext::all_reduce");
  const internal::CommunicationScope communication(*core_, options);
  if (const CrossDeviceOps* ops = core_->cross_device_ops()) return ops->batch_reduce(op, pairs);
  std::vector<Mirrored<Tensor>> reduced;
  reduced.reserve(pairs.size());
  for (const auto& [value, destinations] : pairs) {
    reduced.push_back(
        CrossDeviceOps::broadcast(internal::reduce_replicas(*core_, op, value), destinations));
  }
  return reduced;
}

std::vector<Mirrored<Tensor>> StrategyExtended::batch_reduce_to(
    ReduceOp op, const PlainPairs& pairs, const CommunicationOptions& options) const {
  std::vector<Mirrored<Tensor>> reduced;
  reduced.reserve(pairs.size());
  for (const auto& [value, destinations] : pairs) {
    reduced.push_back(reduce_to(op, value, destinations, options));
  }
  return reduced;
}

Tensor StrategyExtended::read_var(const Variable& variable) const {
  internal::require_cross_replica("read_var", "Variable::value");
  return variable.value().clone();
}

std::vector<size_t> StrategyExtended::begin_update(const Variable& variable) const {
  internal::require_cross_replica("update", "merge_call");
  check_created_here("update", variable);
  if (!variable.impl().is_local()) return {0};
  const internal::LocalVariable& local = variable.impl().local();
  std::vector<size_t> owners;
  for (size_t i = 0; i < local.num_copies(); ++i) {
    size_t first = 0;
    while (!local.component(i).is_alias_of(local.component(first))) ++first;
    owners.push_back(first);
  }
  return owners;
}

Destinations StrategyExtended::non_slot_devices(const std::vector<Variable>& variables) const {
  if (!variables.empty()) return variables[0];
  throw InvalidArgumentError("non_slot_devices needs a variable, but got none");
}

std::vector<size_t> StrategyExtended::begin_update_of(const Destinations& devices) const {
  internal::require_cross_replica("update_non_slot", "merge_call");
  std::vector<size_t> owners(devices.devices().size());
  std::iota(owners.begin(), owners.end(), size_t{0});
  return owners;
}

void StrategyExtended::update_component(size_t component, FunctionRef<void()> call) const {
  const internal::ContextGuard guard(*core_, nullptr, static_cast<int>(component));
  call();
}

void StrategyExtended::check_per_replica(const Variable& variable, size_t components,
                                         size_t given) const {
  const bool on_read = variable.synchronization() == VariableSynchronization::ON_READ;
  if (!on_read && core_->num_replicas_in_sync() > 1) {
    throw InvalidArgumentError(internal::str(
        "Expected value to be mirrored across replicas, but update of variable '", variable.name(),
        "' got a PerReplica of ", given, " components; reduce_to makes one value of them"));
  }
  if (given == components) return;
  throw InvalidArgumentError(internal::str("update of variable '", variable.name(), "', which has ",
                                           components, " components, got a PerReplica of ", given));
}

void StrategyExtended::check_created_here(const char* what, const Variable& variable) const {
  if (variable_created_in_scope(variable)) return;
  throw InvalidArgumentError(internal::str(what, ": variable '", variable.name(),
                                           "' was made under ", variable.impl().core()->name(),
                                           ", not in the scope of this ", core_->name()));
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
  check_created_here("colocate_vars_with", variable);
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
