#include "cohort/distribute/strategies/strategy.h"

#include <ostream>

#include "cohort/distribute/core/strategy_core.h"
#include "cohort/distribute/input/distribute_dataset.h"
#include "cohort/distribute/reduce/reduce_replicas.h"
#include "cohort/distribute/strategies/strategy_object.h"

namespace cohort::distribute {

std::ostream& operator<<(std::ostream& out, const ValueContext& context) {
  return out << "tf.distribute.ValueContext(replica id " << context.replica_id_in_sync_group
             << ",  total replicas in sync: " << context.num_replicas_in_sync << ")";
}

int Strategy::num_replicas_in_sync() const { return core_->num_replicas_in_sync(); }
NamedFunctions& Strategy::named_functions() const { return core()->named_functions(); }

bool Strategy::replicas_move() const { return core()->transaction() != nullptr; }

size_t Strategy::num_local_replicas() const {
  return static_cast<size_t>(core_->num_local_replicas());
}
std::shared_ptr<const cluster_resolver::ClusterResolver> Strategy::cluster_resolver() const {
  return core_->cluster_resolver();
}
StrategyExtended Strategy::extended() const { return StrategyExtended(core_); }
Scope Strategy::scope() const { return Scope(core_); }

std::shared_ptr<train::Trackable> Strategy::trackable() const {
  return internal::make_strategy_object(core_);
}

ValueContext Strategy::value_context(size_t local_replica) const {
  return {core_->replica_id(static_cast<int>(local_replica)), core_->num_replicas_in_sync()};
}

Tensor Strategy::reduce(ReduceOp op, const PerReplica<Tensor>& value,
                        const ReduceAxis& axis) const {
  return internal::reduce_replicas(*core_, op, value, axis);
}
Tensor Strategy::reduce(ReduceOp op, const Mirrored<Tensor>& value, const ReduceAxis& axis) const {
  return internal::reduce_replicas(*core_, op, value, axis);
}
Tensor Strategy::reduce(ReduceOp op, const Tensor& value, const ReduceAxis& axis) const {
  return internal::reduce_replicas(*core_, op, value, axis);
}
Structure Strategy::reduce(ReduceOp op, const PerReplica<Structure>& value,
                           const ReduceAxis& axis) const {
  return internal::reduce_replicas(*core_, op, value, axis);
}

Tensor Strategy::gather(const PerReplica<Tensor>& value, int64_t axis) const {
  return internal::gather_replicas(*core_, value, axis);
}
Tensor Strategy::gather(const Tensor& value, int64_t axis) const {
  return internal::gather_replicas(*core_, value, axis);
}
Structure Strategy::gather(const PerReplica<Structure>& value, int64_t axis) const {
  return internal::gather_replicas(*core_, value, axis);
}
StringTensor Strategy::gather(const PerReplica<StringTensor>& value, int64_t axis) const {
  return internal::gather_replicas(*core_, value, axis);
}

DistributedDataset Strategy::experimental_distribute_dataset(const data::Dataset& dataset) const {
  return experimental_distribute_dataset(dataset, InputOptions{});
}
DistributedDataset Strategy::experimental_distribute_dataset(const data::Dataset& dataset,
                                                             const InputOptions& options) const {
  return internal::distribute_dataset(core(), dataset, options);
}

DistributedDataset Strategy::distribute_datasets_from_function(const DatasetFunction& fn) const {
  return distribute_datasets_from_function(fn, InputOptions{});
}
DistributedDataset Strategy::distribute_datasets_from_function(const DatasetFunction& fn,
                                                               const InputOptions& options) const {
  return internal::distribute_from_function(core(), fn, options);
}
DistributedDataset Strategy::experimental_distribute_datasets_from_function(
    const DatasetFunction& fn) const {
  return distribute_datasets_from_function(fn);
}
DistributedDataset Strategy::experimental_distribute_datasets_from_function(
    const DatasetFunction& fn, const InputOptions& options) const {
  return distribute_datasets_from_function(fn, options);
}

}  // namespace cohort::distribute
