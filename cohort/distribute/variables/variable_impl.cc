#include "cohort/distribute/variables/variable_impl.h"

#include <ATen/ops/embedding.h>
#include <ATen/ops/full.h>
#include <ATen/ops/index_select.h>
#include <c10/core/ScalarType.h>

#include <utility>

#include "cohort/core/structure/device.h"
#include "cohort/distribute/core/context_stack.h"
#include "cohort/distribute/core/replica.h"
#include "cohort/distribute/core/strategy_core.h"
#include "cohort/ops/held_number.h"

namespace cohort::internal {

const char* assign_name(AssignOp op) {
  switch (op) {
    case AssignOp::kAssign:
      return "assign";
    case AssignOp::kAdd:
      return "assign_add";
    case AssignOp::kSub:
      return "assign_sub";
  }
  return "assign";
}

VariableImpl::VariableImpl(std::shared_ptr<StrategyCore> core, distribute::VariableSpec spec)
    : core_(std::move(core)), spec_(std::move(spec)) {}

LocalVariable& VariableImpl::local() {
  if (LocalVariable* found = as_local()) return *found;
  throw FailedPreconditionError(str("variable '", name(), "' is a ", kind(),
                                    ", which has no components in this process; use what every "
                                    "variable has: value() and assign()"));
}

Tensor VariableImpl::checked_value(const Tensor& value, const char* operation) const {
  if (!value.defined() || value.sizes() != shape() || !c10::canCast(value.scalar_type(), dtype())) {
    throw InvalidArgumentError(str("cannot ", operation, " ", describe(value), " to variable '",
                                   name(), "', which is ", dtype_name(dtype()), " ",
                                   shape_str(shape())));
  }
  if (value.layout() != at::kStrided) {
    throw InvalidArgumentError(internal::str(
        "cannot ", operation, " ", describe(value), " of layout ", value.layout(), " to variable '",
        name(),
        "'; make it dense with to_dense(), or call scatter_update, scatter_add or scatter_sub with "
        "its rows"));
  }
  return value.detach();
}

Replica* VariableImpl::calling_replica(const char* operation) const {
  const ContextFrame* frame = current_frame();
  if (frame == nullptr || frame->core->is_default()) return nullptr;
  if (frame->core == core_.get()) return frame->replica;
  if (core_->is_default()) {
    const bool shared = frame->replica != nullptr && frame->core->num_replicas_in_sync() > 1;
    if (!shared || std::string_view(operation) == "read") return nullptr;
    throw FailedPreconditionError(str("variable '", name(), "' was made outside of the scope of ",
                                      frame->core->name(), ", so its replicas cannot ", operation,
                                      " it; make it under strategy.scope()"));
  }
  throw FailedPreconditionError(str("Mixing different tf.distribute.Strategy objects: variable '",
                                    name(), "' was made under a ", core_->name(),
                                    " and cannot be used (", operation,
                                    ") in the scope of another ", frame->core->name()));
}

std::string VariableImpl::call_of_tasks(const char* operation) const {
  if (!core_->group().spans_tasks()) return {};
  return str(operation, " of variable '", name(), "'");
}

at::Scalar VariableImpl::checked_number(AssignOp op, const at::Scalar& number) const {
  if (can_hold(dtype(), number)) return held_number(dtype(), number);
  throw InvalidArgumentError(str("cannot ", assign_name(op), " the number ", number_text(number),
                                 " to variable '", name(), "', which is ", dtype_name(dtype()),
                                 " and cannot hold it; cast(constant(...), dtype) converts it"));
}

void VariableImpl::assign_number(AssignOp op, const at::Scalar& number) {
  const bool adds_up = options().synchronization != distribute::VariableSynchronization::ON_READ &&
                       options().aggregation == distribute::VariableAggregation::SUM;
  if (adds_up && !number.equal(0)) {
    const Replica* replica = calling_replica(assign_name(op));
    if (replica != nullptr && replica->num_replicas_in_sync() > 1) {
      throw InvalidArgumentError(str(
          "A non-DistributedValues value ", number_text(number),
          " cannot be reduced with the given reduce op SUM: ", assign_name(op), " of variable '",
          name(), "' in a replica takes this replica's part of the sum, as a tensor; to ",
          assign_name(op),
          " one number for all, make the variable with ONLY_FIRST_REPLICA or MEAN, "
          "or call it in merge_call"));
    }
  }
  assign(op, at::full(shape(), number, at::dtype(dtype()).device(device_of_new_tensors())));
}

Tensor VariableImpl::read_rows(const Tensor& ids) const {
  const Tensor value = read();
  const Tensor here = ids.to(value.device());
  if (value.dim() == 2) {
    // Its gradient has the rows that were read only.
    return at::embedding(value, here, /*padding_idx=*/-1, /*scale_grad_by_freq=*/false,
                         /*sparse=*/true);
  }
  std::vector<int64_t> result = ids.sizes().vec();
  result.insert(result.end(), shape().begin() + 1, shape().end());
  return value.index_select(0, here.reshape({-1})).reshape(result);
}

std::string VariableImpl::device() const {
  return core_->is_default() ? canonicalize("CPU:0") : core_->parameter_devices()[0];
}

void check_row_ids(const Tensor& ids, at::IntArrayRef shape, const char* operation,
                   const std::string& name) {
  if (shape.empty()) {
    throw InvalidArgumentError(
        str(operation, " of variable '", name, "', which has rank 0 and no rows; use value()"));
  }
  if (!ids.defined() || (ids.scalar_type() != int64 && ids.scalar_type() != int32)) {
    throw InvalidArgumentError(str(operation, " of variable '", name,
                                   "' takes indices of int32 or int64, not ", describe(ids)));
  }
  const Tensor flat = ids.detach().to(at::kCPU, int64).contiguous();
  const int64_t* values = flat.data_ptr<int64_t>();
  for (int64_t i = 0; i < flat.numel(); ++i) {
    if (values[i] >= 0 && values[i] < shape[0]) continue;
    throw InvalidArgumentError(str(operation, " of variable '", name, "': the index ", values[i],
                                   " at place ", i, " is not in [0, ", shape[0], "), its rows"));
  }
}

std::shared_ptr<train::SaveGroup> VariableImpl::save_group() const { return core_->save_group(); }

}  // namespace cohort::internal
