// What writes of a ServedVariable do, in a step and outside, and how it is saved and restored.
#include <ATen/ops/arange.h>

#include <utility>

#include "cohort/core/profiler/tracing.h"
#include "cohort/distribute/core/replica.h"
#include "cohort/distribute/strategies/strategy.h"
#include "cohort/distribute/variables/write_together.h"
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

}  // namespace

void ServedVariable::assign(AssignOp op, const Tensor& value) {
  if (is_tracing()) return;
  const Caller caller = this->caller(assign_name(op));
  check_computes(*this, op);
  const Tensor checked = checked_value(value, assign_name(op));
  if (!caller.in_step) {
    OpsByPs ops(static_cast<size_t>(host_.cluster().num_ps()));
    // The caller's own memory will do: this waits until it has been sent.
    const Tensor whole = checked.detach().to(at::kCPU, dtype()).contiguous();
    for (const PlacedShard& shard : layout().shards) {
      ops[static_cast<size_t>(shard.place.ps)].push_back(
          AssignShard{shard.place.key, op, layout().part_of(whole, shard)});
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
  const RowRange& rows = layout().shards[index].rows;
  const auto write_rows = [&](const Tensor& one) {
    scatter_in_step(as_scatter(op), {.values = owned(one, dtype()),
                                     .indices = at::arange(rows.begin, rows.end, int64)});
  };
  if (!is_one_of_several(caller)) return write_rows(value);
  assign_together(*caller.replica,
                  {*this, layout().shard_name(index), call_of_tasks(assign_name(op))}, op, value,
                  write_rows);
}

void ServedVariable::assign_in_step(AssignOp op, const Tensor& value) {
  const Tensor whole = owned(value, dtype());
  copies_->assign(op, whole);
  for (const PlacedShard& shard : layout().shards) {
    host_.step().add(shard.place.ps,
                     AssignShard{shard.place.key, op, layout().part_of(whole, shard).contiguous()});
  }
}

void ServedVariable::assign_shard(size_t index, AssignOp op, const Tensor& value) const {
  const PlacedShard& shard = layout().shards[index];
  OpsByPs ops(static_cast<size_t>(host_.cluster().num_ps()));
  ops[static_cast<size_t>(shard.place.ps)].push_back(
      AssignShard{shard.place.key, op, owned(value, dtype())});
  apply_outside(std::move(ops));
}

ServedVariable::OpsByPs ServedVariable::scatter_ops(ScatterOp op,
                                                    const IndexedSlices& slices) const {
  OpsByPs ops(static_cast<size_t>(host_.cluster().num_ps()));
  for (const PlacedShard& shard : layout().shards) {
    Tensor indices = slices.indices, values = slices.values;
    if (layout().is_divided()) {
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

void ServedVariable::scatter_in_step(ScatterOp op, const IndexedSlices& slices) {
  host_.step().see_updates(*copies_);
  copies_->scatter(op, slices);
  OpsByPs ops = scatter_ops(op, slices);
  for (size_t ps = 0; ps < ops.size(); ++ps) {
    for (StoreOp& one : ops[ps]) host_.step().add(static_cast<int>(ps), std::move(one));
  }
}

void ServedVariable::apply_outside(OpsByPs ops) const {
  if (!host_.cluster().writes_outside_steps()) return;
  host_.step().apply_now(host_.store(), std::move(ops));
}

void ServedVariable::check_saved(const std::string& name) const {
  if (!caller("save").in_step) return;
  throw FailedPreconditionError(
      str("variable '", name, "' was to be saved in a step; save checkpoints after it"));
}

void ServedVariable::check_restored(const std::string& name,
                                    const train::RestoreSource& source) const {
  if (source.late() || !caller("restore").in_step) return;
  throw FailedPreconditionError(
      str("variable '", name, "' was to be restored in a step; restore checkpoints before it"));
}

std::vector<train::CheckpointValue> ServedVariable::checkpoint_values() {
  check_saved(name());
  train::CheckpointValue saved{.attribute = train::kVariableValue,
                               .full_name = name(),
                               .full_shape = shape().vec(),
                               .parts = {}};
  for (size_t i = 0; i < layout().shards.size(); ++i) {
    saved.parts.push_back({.value = Leaf(Tensor()),
                           .slice = slice_of(layout().shards[i]),
                           .remote = part_of_checkpoint(i)});
  }
  return {std::move(saved)};
}

std::shared_ptr<const train::RemotePart> ServedVariable::part_of_checkpoint(size_t index) const {
  return served_part(index, "");
}

std::vector<train::RemoteRead> ServedVariable::shards_to_make() const {
  std::vector<train::RemoteRead> reads;
  for (size_t i = 0; i < layout().shards.size(); ++i) {
    reads.push_back({.part = served_part(i, layout().shard_name(i)),
                     .key = "",
                     .slice = slice_of(layout().shards[i])});
  }
  return reads;
}

std::shared_ptr<const train::RemotePart> ServedVariable::served_part(size_t index,
                                                                     std::string new_name) const {
  const PlacedShard& shard = layout().shards[index];
  return std::make_shared<ServedPart>(
      host_.part_keeper(),
      ServedPart::Identity{.place = shard.place, .new_name = std::move(new_name)},
      layout().shard_shape(index), dtype());
}

std::optional<train::TensorSlice> ServedVariable::slice_of(const PlacedShard& shard) const {
  if (!layout().is_divided()) return std::nullopt;
  train::TensorSlice slice{.start = std::vector<int64_t>(shape().size(), 0),
                           .length = shape().vec()};
  slice.start[0] = shard.rows.begin;
  slice.length[0] = shard.rows.size();
  return slice;
}

void ServedVariable::prepare_restore(train::RestoreSource& source) {
  check_restored(name(), source);
  for (size_t i = 0; i < layout().shards.size(); ++i) {
    const auto take = [this, i](const Tensor& value) { assign_shard(i, AssignOp::kAssign, value); };
    source.read_remote(train::kVariableValue, shape(), slice_of(layout().shards[i]),
                       part_of_checkpoint(i), take);
  }
}

}  // namespace cohort::internal
