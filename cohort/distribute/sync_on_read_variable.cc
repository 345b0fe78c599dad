#include "cohort/distribute/sync_on_read_variable.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/stack.h>
#include <c10/core/ScalarType.h>

#include "cohort/distribute/context_stack.h"
#include "cohort/distribute/replica_context.h"
#include "cohort/distribute/strategy.h"
#include "cohort/distribute/strategy_core.h"

namespace cohort::internal {

using distribute::ReplicaContext;
using distribute::Strategy;
using distribute::VariableAggregation;

Tensor SyncOnReadVariable::read() const {
  ReplicaContext* replica = owners_replica("read");
  if (replica == nullptr) return aggregate();
  if (!sync_on_read()) return leaf(static_cast<size_t>(replica->local_replica_id()));
  struct Frame {
    const SyncOnReadVariable* variable;
    Tensor result;
  } mine{this, {}};
  replica->merge("read of an ON_READ variable", &mine, [&](Strategy&, std::span<void* const> all) {
    for (void* one : all) {
      const SyncOnReadVariable* other = static_cast<Frame*>(one)->variable;
      if (other == this) continue;
      throw FailedPreconditionError(str("one replica reads variable '", options().name,
                                        "' over all replicas, another '", other->options().name,
                                        "'; every replica must read the same ones in one order"));
    }
    const Tensor value = aggregate();
    for (void* one : all) static_cast<Frame*>(one)->result = value.clone();
  });
  return mine.result;
}

Tensor SyncOnReadVariable::aggregate() const {
  if (core()->num_replicas_in_sync() == 1) return leaf(0);
  std::vector<Tensor> components;
  for (size_t i = 0; i < num_components(); ++i) components.push_back(component(i));
  switch (options().aggregation) {
    case VariableAggregation::SUM:
      return core()->sum_over_replicas(components);
    case VariableAggregation::MEAN:
      return core()->sum_over_replicas(components) / core()->num_replicas_in_sync();
    case VariableAggregation::ONLY_FIRST_REPLICA:
      return core()->value_of_first_replica(components);
    case VariableAggregation::NONE:
      break;
  }
  throw InvalidArgumentError(
      str("Could not convert from SyncOnReadVariable '", options().name,
          "' with VariableAggregation.NONE to one value; make it with .aggregation, or read it in "
          "a replica"));
}

void SyncOnReadVariable::write_restored(size_t replica, const Tensor& value) {
  write(replica, AssignOp::kAssign, value);
  const int64_t count = core()->num_replicas_in_sync();
  if (options().aggregation != VariableAggregation::SUM || count == 1) return;
  at::NoGradGuard no_grad;
  const Tensor& target = component(replica);
  if (at::isFloatingType(dtype()) || at::isComplexType(dtype())) {
    target.div_(count);
  } else {
    target.div_(count, "trunc");
    if (core()->replica_id(static_cast<int>(replica)) == 0) {
      target.mul_(1 - count).add_(value);  // value - share * (count - 1)
    }
  }
}

// One component is the aggregate; the others' sum could come back with other bits.
bool SyncOnReadVariable::saves_components() const {
  return core()->num_replicas_in_sync() > 1 &&
         core()->num_local_replicas() == core()->num_replicas_in_sync() &&
         options().aggregation != VariableAggregation::ONLY_FIRST_REPLICA;
}

std::vector<train::CheckpointValue> SyncOnReadVariable::checkpoint_values() {
  std::vector<train::CheckpointValue> values = LocalVariable::checkpoint_values();
  if (!saves_components()) return values;
  std::vector<Tensor> components;
  for (size_t i = 0; i < num_components(); ++i) components.push_back(component(i).to(at::kCPU));
  values.push_back({.attribute = train::kReplicaComponents,
                    .full_name = options().name,
                    .parts = {{Leaf(at::stack(components))}}});
  return values;
}

void SyncOnReadVariable::prepare_restore(train::RestoreSource& source) {
  LocalVariable::prepare_restore(source);
  std::vector<int64_t> stacked = shape().vec();
  stacked.insert(stacked.begin(), static_cast<int64_t>(num_components()));
  if (!saves_components() || source.shape(train::kReplicaComponents) != stacked) return;
  source.read(train::kReplicaComponents, stacked, dtype(), [this](const Tensor& components) {
    for (const size_t i : distinct_components()) {
      write(i, AssignOp::kAssign, components.select(0, static_cast<int64_t>(i)));
    }
  });
}

void SyncOnReadVariable::assign(AssignOp op, const Tensor& value) {
  ReplicaContext* replica = owners_replica(assign_name(op));
  const Tensor checked = checked_value(value, assign_name(op));
  if (replica != nullptr) {
    return write(static_cast<size_t>(replica->local_replica_id()), op, checked);
  }
  Tensor share = checked;
  if (options().aggregation == VariableAggregation::SUM && core()->num_replicas_in_sync() > 1) {
    if (op != AssignOp::kAssign) {
      throw InvalidArgumentError(
          str("SyncOnReadVariable does not support `", assign_name(op),
              "` in cross-replica context when aggregation is SUM (variable '", options().name,
              "'); use assign, or ", assign_name(op), " in a replica"));
    }
    share = (checked / core()->num_replicas_in_sync()).to(dtype());
  }
  for (const size_t component : distinct_components()) write(component, op, share);
}

}  // namespace cohort::internal
