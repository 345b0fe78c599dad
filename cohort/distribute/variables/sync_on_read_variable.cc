#include "cohort/distribute/variables/sync_on_read_variable.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/stack.h>
#include <c10/core/ScalarType.h>

#include <cstring>
#include <utility>

#include "cohort/core/error.h"
#include "cohort/core/profiler/tracing.h"
#include "cohort/distribute/core/context_stack.h"
#include "cohort/distribute/core/replica.h"
#include "cohort/distribute/core/strategy_core.h"
#include "cohort/distribute/values/reduction.h"
#include "cohort/distribute/variables/write_together.h"

namespace cohort::internal {

using distribute::VariableAggregation;

SyncOnReadVariable::SyncOnReadVariable(std::shared_ptr<StrategyCore> core,
                                       distribute::VariableSpec spec,
                                       std::vector<Tensor> components)
    : LocalVariable(std::move(core), std::move(spec), std::move(components)) {
  if (this->core()->transaction() == nullptr) return;
  const int first = this->core()->replica_id(0);
  for (int id = 0; id < this->core()->num_replicas_in_sync(); ++id) {
    const bool is_own = id >= first && id - first < static_cast<int>(num_components());
    of_all_.push_back(is_own ? component(static_cast<size_t>(id - first)) : component(0).clone());
  }
}

const std::vector<Tensor>& SyncOnReadVariable::kept_components() const {
  return of_all_.empty() ? LocalVariable::kept_components() : of_all_;
}

bool SyncOnReadVariable::knows_all() const {
  return !of_all_.empty() && !core()->transaction()->is_open();
}

void SyncOnReadVariable::write_state(int replica, std::string& out) const {
  const Tensor& value = of_all_[static_cast<size_t>(replica)];
  out.append(static_cast<const char*>(value.data_ptr()), value.nbytes());
}

void SyncOnReadVariable::read_state(int replica, std::string_view bytes) {
  const Tensor& value = of_all_[static_cast<size_t>(replica)];
  if (bytes.size() != value.nbytes()) {
    throw DataLossError(str("the state of variable '", name(), "' of replica ", replica, " has ",
                            bytes.size(), " bytes, not ", value.nbytes()));
  }
  std::memcpy(value.data_ptr(), bytes.data(), bytes.size());
  mark_sharers(value);
}

void SyncOnReadVariable::host(collective::ReplicaRange range) {
  set_components({of_all_.begin() + range.first, of_all_.begin() + range.last});
}

void SyncOnReadVariable::write_everywhere(AssignOp op, const Tensor& value) {
  for (const Tensor& component : kept_components()) {
    apply(component, op, value);
    mark_sharers(component);
  }
}

std::optional<size_t> SyncOnReadVariable::own_component(const char* operation) const {
  if (const Replica* replica = owners_replica(operation)) {
    return static_cast<size_t>(replica->local_replica_id());
  }
  const int updated = updated_component(*core());
  if (updated < 0) return std::nullopt;
  return static_cast<size_t>(updated);
}

Tensor SyncOnReadVariable::read() const {
  Replica* replica = owners_replica("read");
  const bool over_all = replica != nullptr && sync_on_read();
  if (!over_all) {
    const std::optional<size_t> own = own_component("read");
    return own ? leaf(*own) : aggregate();
  }
  struct Frame {
    const SyncOnReadVariable* variable;
    Tensor result;
  } mine{this, {}};
  replica->merge("read of an ON_READ variable", &mine, [&](std::span<void* const> all) {
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
  check_can_aggregate(*this);
  const bool all_are_here = knows_all();
  std::vector<Tensor> components;
  for (size_t i = 0; i < num_components(); ++i) components.push_back(component(i));
  if (all_are_here) components = of_all_;
  const std::string call = all_are_here ? "" : call_of_tasks("read");
  const auto sum_of = [&](at::ArrayRef<Tensor> values) {
    return core()->sum_over_replicas(values, call);
  };
  switch (options().aggregation) {
    case VariableAggregation::SUM:
      return sum_that_fits(wide_sum(components, sum_of), components[0],
                           str("variable '", name(), "':").c_str());
    case VariableAggregation::MEAN:
      return mean_of(wide_sum(components, sum_of), core()->num_replicas_in_sync(), dtype());
    case VariableAggregation::ONLY_FIRST_REPLICA:
      return core()->value_of_first_replica(components, call);
    case VariableAggregation::NONE:
      break;
  }
  throw InvalidArgumentError(
      str("Could not convert from SyncOnReadVariable '", options().name,
          "' with VariableAggregation.NONE to one value; make it with .aggregation, or read it in "
          "a replica"));
}

void SyncOnReadVariable::write_restored(const Tensor& value) {
  const int64_t count = core()->num_replicas_in_sync();
  const bool shares_out = options().aggregation == VariableAggregation::SUM && count > 1;
  if (shares_out) check_can_aggregate(*this);
  write_everywhere(AssignOp::kAssign, value);
  if (!shares_out) return;
  const at::NoGradGuard no_grad;
  const bool divides = at::isFloatingType(dtype()) || at::isComplexType(dtype());
  for (const Tensor& target : kept_components()) {
    divides ? target.div_(count) : target.div_(count, "trunc");
  }
  const Tensor* const first = divides ? nullptr : component_of(0);
  if (first != nullptr) first->mul_(1 - count).add_(value);  // value - share * (count - 1)
}

// If the aggregate alone were saved, other bits would come back: a sum that is divided does not
// give the parts that it was made of.
bool SyncOnReadVariable::saves_components() const {
  return core()->num_replicas_in_sync() > 1 && component(0).numel() > 0;
}

// All replicas' components, stacked: [replicas, ..].
std::vector<int64_t> SyncOnReadVariable::stacked_shape() const {
  std::vector<int64_t> stacked = shape().vec();
  stacked.insert(stacked.begin(), core()->num_replicas_in_sync());
  return stacked;
}

// The rows of the stack that are this task's; nullopt if all are.
std::optional<train::TensorSlice> SyncOnReadVariable::own_rows() const {
  if (!core()->group().spans_tasks()) return std::nullopt;
  train::TensorSlice rows{.start = std::vector<int64_t>(static_cast<size_t>(shape().size()) + 1, 0),
                          .length = stacked_shape()};
  rows.start[0] = core()->replica_id(0);
  rows.length[0] = static_cast<int64_t>(num_components());
  return rows;
}

std::vector<train::CheckpointValue> SyncOnReadVariable::checkpoint_values() {
  std::vector<train::CheckpointValue> values = LocalVariable::checkpoint_values();
  if (!saves_components()) return values;
  Leaf& aggregate = values[0].parts[0].value;
  // The mean of integers is no integer, but a restore expects the variable's dtype.
  if (aggregate.tensor().scalar_type() != dtype()) {
    aggregate = aggregate.tensor().round().to(dtype());
  }
  std::vector<Tensor> components;
  for (size_t i = 0; i < num_components(); ++i) components.push_back(component(i).to(at::kCPU));
  values.push_back({.attribute = train::kReplicaComponents,
                    .full_name = options().name,
                    .full_shape = stacked_shape(),
                    .parts = {{Leaf(at::stack(components)), own_rows()}}});
  return values;
}

void SyncOnReadVariable::prepare_restore(train::RestoreSource& source) {
  LocalVariable::prepare_restore(source);
  const std::vector<int64_t> stacked = stacked_shape();
  if (!saves_components() || source.shape(train::kReplicaComponents) != stacked) return;
  const auto take = [this](const Tensor& components) {
    const std::vector<Tensor>& kept = kept_components();
    for (size_t i = 0; i < kept.size(); ++i) {
      apply(kept[i], AssignOp::kAssign, components.select(0, static_cast<int64_t>(i)));
      mark_sharers(kept[i]);
    }
  };
  if (const auto rows = of_all_.empty() ? own_rows() : std::nullopt) {
    source.read_slice(train::kReplicaComponents, stacked, *rows, dtype(), take);
  } else {
    source.read(train::kReplicaComponents, stacked, dtype(), take);
  }
}

void SyncOnReadVariable::assign(AssignOp op, const Tensor& value) {
  const std::optional<size_t> own = own_component(assign_name(op));
  check_computes(*this, op);
  const Tensor checked = checked_value(value, assign_name(op));
  if (is_tracing()) return;
  if (own) return write(*own, op, checked);
  const bool shares_out =
      options().aggregation == VariableAggregation::SUM && core()->num_replicas_in_sync() > 1;
  if (shares_out && op != AssignOp::kAssign) {
    throw InvalidArgumentError(str("SyncOnReadVariable does not support `", assign_name(op),
                                   "` in cross-replica context when aggregation is SUM (variable '",
                                   options().name, "'); use assign, or ", assign_name(op),
                                   " in a replica"));
  }
  shares_out ? write_restored(checked) : write_everywhere(op, checked);
}

void SyncOnReadVariable::assign_number(AssignOp op, const at::Scalar& number) {
  const std::optional<size_t> own = own_component(assign_name(op));
  if (is_tracing()) return;
  const bool is_alone = own || core()->num_replicas_in_sync() == 1;
  if (op == AssignOp::kAdd && is_alone && add_in_place(own.value_or(0), number)) return;
  LocalVariable::assign_number(op, number);
}

void SyncOnReadVariable::scatter(ScatterOp op, const IndexedSlices& slices) {
  owners_replica(scatter_name(op));
  if (!core()->is_default()) {
    throw UnimplementedError(str(scatter_name(op), " of variable '", name(),
                                 "', which is ON_READ; only ON_WRITE variables have scatter "
                                 "operations under a ",
                                 core()->name()));
  }
  check_computes(*this, op);
  IndexedSlices checked = checked_slices(slices, shape(), dtype(), scatter_name(op), name());
  if (is_tracing()) return;
  if (checked.values.is_alias_of(component(0))) checked.values = checked.values.clone();
  write_rows(0, op, checked);
}

}  // namespace cohort::internal
