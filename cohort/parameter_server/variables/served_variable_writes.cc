// What a ServedVariable's writes do, in a step and outside.
#include <ATen/ops/arange.h>

#include <utility>

#include "cohort/core/profiler/tracing.h"
#include "cohort/distribute/step/replica_context.h"
#include "cohort/distribute/strategies/strategy.h"
#include "cohort/distribute/variables/write_together.h"
#include "cohort/parameter_server/parameter_server_core.h"
#include "cohort/parameter_server/store/row_ids.h"
#include "cohort/parameter_server/variables/kept_parts.h"
#include "cohort/parameter_server/variables/served_variable.h"

namespace cohort::internal {

namespace {

// What the store keeps must not be the caller's own memory, which may change before it is sent.
Tensor owned(const Tensor& value, DType dtype) {
  Tensor copy = value.detach().to(at::kCPU, dtype).contiguous();
  return copy.is_alias_of(value) ? copy.clone() : copy;
}

// The operation on all rows, each once.
ScatterOp as_scatter(AssignOp op) {
  switch (op) {
    case AssignOp::kAdd:
      return ScatterOp::kAdd;
    case AssignOp::kSub:
      return ScatterOp::kSub;
    case AssignOp::kAssign:
      break;
  }
  return ScatterOp::kUpdate;
}

void write(const Tensor& target, AssignOp op, const Tensor& value) {
  switch (op) {
    case AssignOp::kAssign:
      target.copy_(value);
      break;
    case AssignOp::kAdd:
      target.add_(value);
      break;
    case AssignOp::kSub:
      target.sub_(value);
      break;
  }
}

}  // namespace

bool ServedVariable::is_one_of_several(const Caller& caller) {
  return caller.replica != nullptr && caller.replica->num_replicas_in_sync() > 1;
}

void ServedVariable::assign(AssignOp op, const Tensor& value) {
  if (is_tracing()) return;
  const Caller caller = this->caller(assign_name(op));
  check_computes(*this, op);
  const Tensor checked = checked_value(value, assign_name(op));
  if (!caller.in_step) {
    std::vector<std::vector<StoreOp>> ops(static_cast<size_t>(server_core_->num_ps()));
    // The caller's own memory will do: this waits until it has been sent.
    const Tensor whole = checked.detach().to(at::kCPU, dtype()).contiguous();
    for (const Shard& shard : shards_) {
      ops[static_cast<size_t>(shard.place.ps)].push_back(
          AssignShard{shard.place.key, op, part_of(whole, shard)});
    }
    return apply_outside(std::move(ops));
  }
  if (!is_one_of_several(caller)) return assign_in_step(op, checked);
  assign_together(*caller.replica, {*this, name(), call_of_tasks(assign_name(op))}, op, checked,
                  [&](const Tensor& one) { assign_in_step(op, one); });
}

void ServedVariable::assign_part(size_t index, AssignOp op, const Tensor& value) {
  if (is_tracing()) return;
  const Caller caller = this->caller(assign_name(op));
  check_computes(*this, op);
  if (!caller.in_step) return assign_shard(index, op, value);
  const RowRange& rows = shards_[index].rows;
  const auto write_rows = [&](const Tensor& one) {
    scatter_in_step(as_scatter(op), {.values = owned(one, dtype()),
                                     .indices = at::arange(rows.begin, rows.end, int64)});
  };
  if (!is_one_of_several(caller)) return write_rows(value);
  assign_together(*caller.replica, {*this, shard_name(index), call_of_tasks(assign_name(op))}, op,
                  value, write_rows);
}

void ServedVariable::assign_in_step(AssignOp op, const Tensor& value) {
  const Tensor whole = owned(value, dtype());
  server_core_->step().see_updates(*this);
  {
    const at::NoGradGuard no_grad;
    Lock lock;
    View& view = whole_in_step(lock);
    make_writable(view, op != AssignOp::kAssign);
    write(view.value, op, whole);
    view.versions.assign(shards_.size(), -1);  // it is no version of the ps tasks'
    mark_written(view);
  }
  for (const Shard& shard : shards_) {
    server_core_->step().add(shard.place.ps,
                             AssignShard{shard.place.key, op, part_of(whole, shard).contiguous()});
  }
}

void ServedVariable::assign_shard(size_t index, AssignOp op, const Tensor& value) const {
  const Shard& shard = shards_[index];
  std::vector<std::vector<StoreOp>> ops(static_cast<size_t>(server_core_->num_ps()));
  ops[static_cast<size_t>(shard.place.ps)].push_back(
      AssignShard{shard.place.key, op, owned(value, dtype())});
  apply_outside(std::move(ops));
}

std::vector<std::vector<StoreOp>> ServedVariable::scatter_ops(ScatterOp op,
                                                              const IndexedSlices& slices) const {
  std::vector<std::vector<StoreOp>> ops(static_cast<size_t>(server_core_->num_ps()));
  for (const Shard& shard : shards_) {
    Tensor indices = slices.indices, values = slices.values;
    if (shards_.size() > 1) {
      const Tensor chosen =
          (indices >= shard.rows.begin).logical_and(indices < shard.rows.end).nonzero().flatten();
      if (chosen.numel() == 0) continue;
      indices = indices.index_select(0, chosen) - shard.rows.begin;
      values = values.index_select(0, chosen);
    }
    ops[static_cast<size_t>(shard.place.ps)].push_back(
        ScatterShard{shard.place.key, op, indices, values});
  }
  return ops;
}

void ServedVariable::scatter(ScatterOp op, const IndexedSlices& slices) {
  if (is_tracing()) return;
  const Caller caller = this->caller(scatter_name(op));
  check_computes(*this, op);
  IndexedSlices checked = checked_slices(slices, shape(), dtype(), scatter_name(op), name());
  checked = {.values = owned(checked.values, dtype()), .indices = owned(checked.indices, int64)};
  const auto write_rows = [&](const IndexedSlices& rows) {
    if (rows.indices.numel() == 0) return;
    if (caller.in_step) return scatter_in_step(op, rows);
    apply_outside(scatter_ops(op, rows));
  };
  if (!is_one_of_several(caller)) return write_rows(checked);
  scatter_together(*caller.replica, {*this, name(), call_of_tasks(scatter_name(op))}, op, checked,
                   write_rows);
}

void ServedVariable::scatter_here(ScatterOp op, const IndexedSlices& slices) const {
  const at::NoGradGuard no_grad;
  Lock lock;
  View& view = view_in_step(lock);
  const DistinctRows distinct = distinct_rows(slices.indices);
  if (!view.value.defined()) read_rows_into(view, lock, distinct.ids);
  if (view.value.defined()) {
    make_writable(view, true);
    scatter_rows(view.value, op, slices);
    view.versions.assign(shards_.size(), -1);
    mark_written(view);
  } else {
    view.is_table = true;
    const Tensor places =
        positions_in(view.rows.ids(), distinct.ids).index_select(0, distinct.positions);
    scatter_rows(view.rows.writable_rows(), op, {.values = slices.values, .indices = places});
    view.row_versions.assign(shards_.size(), -1);
  }
}

void ServedVariable::scatter_in_step(ScatterOp op, const IndexedSlices& slices) {
  server_core_->step().see_updates(*this);
  scatter_here(op, slices);
  std::vector<std::vector<StoreOp>> ops = scatter_ops(op, slices);
  for (size_t ps = 0; ps < ops.size(); ++ps) {
    for (StoreOp& one : ops[ps]) server_core_->step().add(static_cast<int>(ps), std::move(one));
  }
}

void ServedVariable::apply_outside(std::vector<std::vector<StoreOp>> ops) const {
  if (!server_core_->writes_outside_steps()) return;
  server_core_->step().apply_now(server_core_->store(), std::move(ops));
}

void ServedVariable::check_saved(const std::string& name) const {
  if (!in_step("save")) return;
  throw FailedPreconditionError(
      str("variable '", name, "' was to be saved in a step; save checkpoints after it"));
}

void ServedVariable::check_restored(const std::string& name,
                                    const train::RestoreSource& source) const {
  if (source.late() || !in_step("restore")) return;
  throw FailedPreconditionError(
      str("variable '", name, "' was to be restored in a step; restore checkpoints before it"));
}

std::vector<train::CheckpointValue> ServedVariable::checkpoint_values() {
  check_saved(name());
  train::CheckpointValue saved{.attribute = train::kVariableValue,
                               .full_name = name(),
                               .full_shape = shape().vec(),
                               .parts = {}};
  for (size_t i = 0; i < shards_.size(); ++i) {
    saved.parts.push_back(
        {.value = Leaf(Tensor()), .slice = slice_of(shards_[i]), .remote = part_of_checkpoint(i)});
  }
  return {std::move(saved)};
}

std::shared_ptr<const train::RemotePart> ServedVariable::part_of_checkpoint(size_t index) const {
  return served_part(index, "");
}

std::vector<train::RemoteRead> ServedVariable::shards_to_make() const {
  std::vector<train::RemoteRead> reads;
  for (size_t i = 0; i < shards_.size(); ++i) {
    reads.push_back(
        {.part = served_part(i, shard_name(i)), .key = "", .slice = slice_of(shards_[i])});
  }
  return reads;
}

std::shared_ptr<const train::RemotePart> ServedVariable::served_part(size_t index,
                                                                     std::string new_name) const {
  const Shard& shard = shards_[index];
  std::vector<int64_t> sizes = shape().vec();
  if (shards_.size() > 1) sizes[0] = shard.rows.size();
  return std::make_shared<ServedPart>(
      server_core_->part_keeper(),
      ServedPart::Identity{.place = shard.place, .new_name = std::move(new_name)}, std::move(sizes),
      dtype());
}

std::optional<train::TensorSlice> ServedVariable::slice_of(const Shard& shard) const {
  if (shards_.size() == 1) return std::nullopt;
  train::TensorSlice slice{.start = std::vector<int64_t>(shape().size(), 0),
                           .length = shape().vec()};
  slice.start[0] = shard.rows.begin;
  slice.length[0] = shard.rows.size();
  return slice;
}

void ServedVariable::prepare_restore(train::RestoreSource& source) {
  check_restored(name(), source);
  for (size_t i = 0; i < shards_.size(); ++i) {
    const auto take = [this, i](const Tensor& value) { assign_shard(i, AssignOp::kAssign, value); };
    source.read_remote(train::kVariableValue, shape(), slice_of(shards_[i]), part_of_checkpoint(i),
                       take);
  }
}

}  // namespace cohort::internal
