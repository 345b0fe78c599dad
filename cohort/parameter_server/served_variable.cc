#include "cohort/parameter_server/served_variable.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include <utility>

#include "cohort/distribute/replica_context.h"
#include "cohort/distribute/strategy.h"
#include "cohort/distribute/tracing.h"
#include "cohort/parameter_server/parameter_server_core.h"

namespace cohort::internal {

using distribute::ReplicaContext;
using distribute::VariableAggregation;
using distribute::VariableSynchronization;

namespace {

// What the store keeps must not be the caller's own memory, which may change before it is sent.
Tensor owned(const Tensor& value, DType dtype) {
  Tensor copy = value.detach().to(at::kCPU, dtype).contiguous();
  return copy.is_alias_of(value) ? copy.clone() : copy;
}

}  // namespace

ServedVariable::ServedVariable(const std::shared_ptr<ParameterServerCore>& core,
                               distribute::VariableSpec spec, std::vector<Shard> shards)
    : VariableImpl(core, std::move(spec)),
      server_core_(core),
      shards_(std::move(shards)),
      views_([this] { return make_view(); }) {}

const char* ServedVariable::kind() const {
  return shards_.size() > 1 ? "ShardedVariable" : "Variable";
}

Tensor ServedVariable::part_of(const Tensor& whole, const Shard& shard) const {
  if (shards_.size() == 1) return whole;
  return whole.narrow(0, shard.rows.begin, shard.rows.size());
}

std::unique_ptr<ServedVariable::View> ServedVariable::make_view() const {
  auto view = std::make_unique<View>();
  view->versions.assign(shards_.size(), -1);
  return view;
}

void ServedVariable::add_known(std::vector<StoreClient::Known>& shards) const {
  View& view = views_.get();
  const std::lock_guard lock(view.mutex);
  for (size_t i = 0; i < shards_.size(); ++i) {
    shards.push_back({shards_[i].place, view.versions[i]});
  }
}

void ServedVariable::take(std::span<const VariableStore::Value> values) const {
  View& view = views_.get();
  const std::lock_guard lock(view.mutex);
  const at::NoGradGuard no_grad;
  if (!view.value.defined()) {
    view.value = at::empty(shape(), at::dtype(dtype()));
    const int replicas = server_core_->num_local_replicas();
    for (int i = 0; i < replicas; ++i) {
      view.leaves.push_back(view.value.variable_data());
      view.leaves.back().set_requires_grad(trainable());
    }
  }
  bool changed = false;
  for (size_t i = 0; i < shards_.size(); ++i) {
    if (!values[i].tensor.defined()) continue;
    part_of(view.value, shards_[i]).copy_(values[i].tensor);
    view.versions[i] = values[i].version;
    changed = true;
  }
  if (!changed) return;
  for (const Tensor& leaf : view.leaves) leaf.unsafeGetTensorImpl()->bump_version();
}

ServedVariable::View& ServedVariable::view_in_step(std::unique_lock<std::mutex>& lock) const {
  View& view = views_.get();
  lock = std::unique_lock(view.mutex);
  if (view.is_used) return view;
  lock.unlock();
  std::vector<StoreClient::Known> known;
  for (const Shard& shard : shards_) known.push_back({shard.place, -1});
  const auto values = server_core_->store().read(known);
  take(values);
  lock.lock();
  if (std::exchange(view.is_used, true)) return view;
  server_core_->step().use(std::const_pointer_cast<ServedVariable>(shared_from_this()));
  return view;
}

Tensor ServedVariable::fetch() const {
  std::vector<StoreClient::Known> known;
  for (const Shard& shard : shards_) known.push_back({shard.place, -1});
  const auto values = server_core_->store().read(known);
  if (values.size() == 1) return values[0].tensor.clone();
  std::vector<Tensor> parts;
  for (const VariableStore::Value& value : values) parts.push_back(value.tensor);
  return at::cat(parts);
}

Tensor ServedVariable::read() const {
  if (is_tracing()) return at::zeros(shape(), at::dtype(dtype()));
  const ReplicaContext* replica = calling_replica("read");
  if (replica == nullptr) return fetch();
  std::unique_lock<std::mutex> lock;
  return view_in_step(lock).leaves[static_cast<size_t>(replica->local_replica_id())];
}

void ServedVariable::assign(AssignOp op, const Tensor& value) {
  if (is_tracing()) return;
  ReplicaContext* replica = calling_replica(assign_name(op));
  const Tensor checked = checked_value(value, assign_name(op));
  if (replica == nullptr) {
    std::vector<std::vector<StoreOp>> ops(static_cast<size_t>(server_core_->store().num_ps()));
    const Tensor whole = owned(checked, dtype());
    for (const Shard& shard : shards_) {
      ops[static_cast<size_t>(shard.place.ps)].push_back(
          AssignShard{shard.place.key, op, part_of(whole, shard)});
    }
    return apply_outside(std::move(ops));
  }
  if (replica->num_replicas_in_sync() == 1) return assign_in_step(op, checked);
  const VariableAggregation aggregation = options().aggregation;
  if (aggregation == VariableAggregation::NONE) {
    throw InvalidArgumentError(str("You must specify an aggregation method to update variable '",
                                   name(), "' in Replica Context: make it with .aggregation"));
  }
  struct Frame {
    Tensor value;
  } mine{checked};
  replica->merge(assign_name(op), &mine, [&](distribute::Strategy&, std::span<void* const> all) {
    std::vector<Tensor> values;
    for (void* one : all) values.push_back(static_cast<Frame*>(one)->value);
    Tensor aggregate = aggregation == VariableAggregation::ONLY_FIRST_REPLICA
                           ? values[0]
                           : server_core_->sum_over_replicas(values);
    if (aggregation == VariableAggregation::MEAN) {
      aggregate = aggregate / static_cast<int64_t>(values.size());
    }
    assign_in_step(op, aggregate);
  });
}

void ServedVariable::assign_in_step(AssignOp op, const Tensor& value) {
  const Tensor whole = owned(value, dtype());
  {
    const at::NoGradGuard no_grad;
    std::unique_lock<std::mutex> lock;
    View& view = view_in_step(lock);
    switch (op) {
      case AssignOp::kAssign:
        view.value.copy_(whole);
        break;
      case AssignOp::kAdd:
        view.value.add_(whole);
        break;
      case AssignOp::kSub:
        view.value.sub_(whole);
        break;
    }
    for (const Tensor& leaf : view.leaves) leaf.unsafeGetTensorImpl()->bump_version();
  }
  for (const Shard& shard : shards_) {
    server_core_->step().add(shard.place.ps,
                             AssignShard{shard.place.key, op, part_of(whole, shard).contiguous()});
  }
}

std::vector<ServedVariable::ShardRows> ServedVariable::by_shard(const Tensor& indices,
                                                                const Tensor& values) const {
  if (shards_.size() == 1) return {{&shards_[0], indices, values}};
  std::vector<ShardRows> rows;
  for (const Shard& shard : shards_) {
    const Tensor chosen =
        (indices >= shard.rows.begin).logical_and(indices < shard.rows.end).nonzero().flatten();
    if (chosen.numel() == 0) continue;
    rows.push_back({&shard, indices.index_select(0, chosen) - shard.rows.begin,
                    values.index_select(0, chosen)});
  }
  return rows;
}

void ServedVariable::scatter(ScatterOp op, const IndexedSlices& slices) {
  ReplicaContext* replica = calling_replica(scatter_name(op));
  IndexedSlices checked = checked_slices(slices, shape(), dtype(), scatter_name(op), name());
  checked.values = owned(checked.values, dtype());
  if (replica != nullptr && replica->num_replicas_in_sync() > 1) {
    throw UnimplementedError(str(scatter_name(op), " of variable '", name(),
                                 "' by several replicas of a worker; call it in merge_call"));
  }
  if (replica != nullptr) {
    std::unique_lock<std::mutex> lock;
    View& view = view_in_step(lock);
    scatter_rows(view.value, op, checked);
    for (const Tensor& leaf : view.leaves) leaf.unsafeGetTensorImpl()->bump_version();
  }
  std::vector<std::vector<StoreOp>> ops(static_cast<size_t>(server_core_->store().num_ps()));
  for (const ShardRows& rows : by_shard(checked.indices, checked.values)) {
    ScatterShard one{rows.shard->place.key, op, rows.indices, rows.values};
    if (replica != nullptr) {
      server_core_->step().add(rows.shard->place.ps, std::move(one));
    } else {
      ops[static_cast<size_t>(rows.shard->place.ps)].push_back(std::move(one));
    }
  }
  if (replica == nullptr) apply_outside(std::move(ops));
}

void ServedVariable::apply_outside(std::vector<std::vector<StoreOp>> ops) const {
  StoreClient::Push push;
  server_core_->store().apply(std::move(ops), push);
}

std::vector<train::CheckpointValue> ServedVariable::checkpoint_values() {
  if (calling_replica("save") != nullptr) {
    throw FailedPreconditionError(
        str("variable '", name(), "' was to be saved in a step; save checkpoints after it"));
  }
  std::vector<StoreClient::Known> known;
  for (const Shard& shard : shards_) known.push_back({shard.place, -1});
  const auto values = server_core_->store().read(known);
  train::CheckpointValue saved{.attribute = train::kVariableValue,
                               .full_name = name(),
                               .full_shape = shape().vec(),
                               .parts = {}};
  for (size_t i = 0; i < shards_.size(); ++i) {
    train::CheckpointValue::Part part{Leaf(values[i].tensor)};
    if (shards_.size() > 1) part.slice = slice_of(shards_[i]);
    saved.parts.push_back(std::move(part));
  }
  return {std::move(saved)};
}

train::TensorSlice ServedVariable::slice_of(const Shard& shard) const {
  train::TensorSlice slice{.start = std::vector<int64_t>(shape().size(), 0),
                           .length = shape().vec()};
  slice.start[0] = shard.rows.begin;
  slice.length[0] = shard.rows.size();
  return slice;
}

void ServedVariable::prepare_restore(train::RestoreSource& source) {
  for (const Shard& shard : shards_) {
    const auto take = [this, shard](const Tensor& value) {
      std::vector<std::vector<StoreOp>> ops(static_cast<size_t>(server_core_->store().num_ps()));
      ops[static_cast<size_t>(shard.place.ps)].push_back(
          AssignShard{shard.place.key, AssignOp::kAssign, value.contiguous()});
      apply_outside(std::move(ops));
    };
    if (shards_.size() == 1) {
      source.read(train::kVariableValue, shape(), dtype(), take);
    } else {
      source.read_slice(train::kVariableValue, shape(), slice_of(shard), dtype(), take);
    }
  }
}

}  // namespace cohort::internal
