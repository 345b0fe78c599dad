// A shard of a ServedVariable, as a variable.
#include <ATen/ops/arange.h>

#include <utility>

#include "cohort/core/error.h"
#include "cohort/parameter_server/variables/served_variable.h"

namespace cohort::internal {
namespace {

distribute::VariableSpec spec_of_shard(const ServedVariable& whole, size_t index) {
  distribute::VariableSpec spec = whole.spec();
  spec.shape[0] = whole.layout().shards[index].rows.size();
  spec.options.name = whole.layout().shard_name(index);
  return spec;
}

}  // namespace

ShardVariable::ShardVariable(std::shared_ptr<ServedVariable> whole, size_t index)
    : VariableImpl(whole->core(), spec_of_shard(*whole, index)),
      whole_(std::move(whole)),
      index_(index) {}

Tensor ShardVariable::read() const {
  return whole_->read_rows(at::arange(shard().rows.begin, shard().rows.end, int64));
}

void ShardVariable::assign(AssignOp op, const Tensor& value) {
  whole_->assign_part(index_, op, checked_value(value, assign_name(op)));
}

void ShardVariable::scatter(ScatterOp op, const IndexedSlices& slices) {
  IndexedSlices checked = checked_slices(slices, shape(), dtype(), scatter_name(op), name());
  checked.indices = checked.indices + shard().rows.begin;
  whole_->scatter(op, checked);
}

Tensor ShardVariable::read_rows(const Tensor& ids) const {
  return whole_->read_rows(ids.to(int64) + shard().rows.begin);
}

void ShardVariable::throw_not_whole(const char* what) const {
  throw FailedPreconditionError(str(what, " of '", name(), "', which is a shard of variable '",
                                    whole_->name(), "'; use the variable itself"));
}

Tensor ShardVariable::tape_source() const { throw_not_whole("a tape was asked for the gradient"); }

void ShardVariable::bind_component(size_t, Tensor) {
  throw_not_whole("a module's tensor in place");
}

std::string ShardVariable::device() const { return device_of_ps(shard().place.ps); }

std::vector<train::CheckpointValue> ShardVariable::checkpoint_values() {
  whole_->check_saved(name());
  return {{.attribute = train::kVariableValue,
           .full_name = name(),
           .parts = {{.value = Leaf(Tensor()), .remote = whole_->part_of_checkpoint(index_)}}}};
}

void ShardVariable::prepare_restore(train::RestoreSource& source) {
  whole_->check_restored(name(), source);
  source.read_remote(train::kVariableValue, shape(), std::nullopt,
                     whole_->part_of_checkpoint(index_),
                     [whole = whole_, index = index_](const Tensor& value) {
                       whole->assign_shard(index, AssignOp::kAssign, value);
                     });
}

}  // namespace cohort::internal
