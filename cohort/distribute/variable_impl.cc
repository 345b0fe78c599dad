#include "cohort/distribute/variable_impl.h"

#include <ATen/core/grad_mode.h>
#include <c10/core/ScalarType.h>

#include "cohort/distribute/context_stack.h"
#include "cohort/distribute/strategy_core.h"

namespace cohort::internal {

using distribute::VariableOptions;
using distribute::VariableSynchronization;

const char* assign_name(AssignOp op) {
  switch (op) {
    case AssignOp::kAssign: return "assign";
    case AssignOp::kAdd: return "assign_add";
    case AssignOp::kSub: return "assign_sub";
  }
  return "assign";
}

VariableOptions resolve_options(VariableOptions options, DType dtype) {
  if (options.synchronization == VariableSynchronization::AUTO) {
    options.synchronization = VariableSynchronization::ON_WRITE;
  }
  const bool floating = at::isFloatingType(dtype) || at::isComplexType(dtype);
  const bool on_read = options.synchronization == VariableSynchronization::ON_READ;
  if (!options.trainable) options.trainable = floating && !on_read;
  if (*options.trainable && !floating) {
    throw InvalidArgumentError(str("variable '", options.name, "' of dtype ", dtype_name(dtype),
                                   " cannot be trainable; gradients need a floating dtype"));
  }
  if (*options.trainable && on_read) {
    throw InvalidArgumentError(str("variable '", options.name,
                                   "': ON_READ variables differ between replicas and cannot be "
                                   "trainable"));
  }
  return options;
}

VariableImpl::VariableImpl(std::shared_ptr<StrategyCore> core, VariableOptions options,
                           std::vector<Tensor> components)
    : core_(std::move(core)), options_(std::move(options)), components_(std::move(components)) {
  for (size_t i = 0; i < components_.size(); ++i) {
    leaves_.push_back(make_leaf(components_[i]));
    bool shared = false;
    for (const size_t j : distinct_) shared |= components_[i].is_alias_of(components_[j]);
    if (!shared) distinct_.push_back(i);
  }
}

Tensor VariableImpl::make_leaf(const Tensor& component) const {
  Tensor leaf = component.variable_data();
  leaf.set_requires_grad(trainable());
  return leaf;
}

std::string VariableImpl::component_name(size_t replica) const {
  return replica == 0 ? options_.name + ":0" : str(options_.name, "/replica_", replica, ":0");
}

void VariableImpl::bind_component(size_t replica, Tensor leaf) {
  const Tensor& component = components_[replica];
  if (leaf.sizes() != component.sizes() || leaf.scalar_type() != component.scalar_type() ||
      leaf.device() != component.device()) {
    throw InvalidArgumentError(str("variable '", component_name(replica), "' is ",
                                   describe(component), " on ", component.device().str(),
                                   ", but the tensor to bind is ", describe(leaf), " on ",
                                   leaf.device().str()));
  }
  at::NoGradGuard no_grad;
  leaf.set_data(component);
  leaves_[replica] = std::move(leaf);
}

void VariableImpl::mark_written(size_t replica) const {
  leaves_[replica].unsafeGetTensorImpl()->bump_version();
}

Tensor VariableImpl::checked_value(const Tensor& value, const char* operation) const {
  if (!value.defined() || value.sizes() != shape() ||
      !c10::canCast(value.scalar_type(), dtype())) {
    throw InvalidArgumentError(str("cannot ", operation, " ", describe(value), " to variable '",
                                   options_.name, "', which is ", describe(components_[0])));
  }
  return value.detach();
}

void VariableImpl::write(size_t replica, AssignOp op, const Tensor& value) {
  at::NoGradGuard no_grad;
  const Tensor& target = components_[replica];
  const auto local = [&] { return value.to(target.device(), target.scalar_type()); };
  switch (op) {
    case AssignOp::kAssign: target.copy_(value); break;
    case AssignOp::kAdd: target.add_(local()); break;
    case AssignOp::kSub: target.sub_(local()); break;
  }
  for (size_t i = 0; i < components_.size(); ++i) {
    if (components_[i].is_alias_of(target)) mark_written(i);
  }
}

std::vector<train::CheckpointValue> VariableImpl::checkpoint_values() {
  if (calling_replica("save") != nullptr) {
    throw FailedPreconditionError(str("variable '", options_.name,
                                      "' was to be saved in a step; save checkpoints after it"));
  }
  return {{.attribute = train::kVariableValue,
           .full_name = options_.name,
           .parts = {{Leaf(read().detach())}}}};
}

void VariableImpl::write_restored(size_t replica, const Tensor& value) {
  write(replica, AssignOp::kAssign, value);
}

void VariableImpl::prepare_restore(train::RestoreSource& source) {
  if (!source.late() && calling_replica("restore") != nullptr) {
    throw FailedPreconditionError(str("variable '", options_.name, "' was to be restored in a ",
                                      "step; restore checkpoints before it"));
  }
  source.read(train::kVariableValue, shape(), dtype(), [this](const Tensor& value) {
    for (const size_t i : distinct_) write_restored(i, value);
  });
}

distribute::ReplicaContext* VariableImpl::calling_replica(const char* operation) const {
  const ContextFrame* frame = current_frame();
  if (frame == nullptr || frame->core->is_default()) return nullptr;
  if (frame->core == core_.get()) return frame->replica;
  if (core_->is_default()) {
    const bool shared = frame->replica != nullptr && frame->core->num_local_replicas() > 1;
    if (!shared || std::string_view(operation) == "read") return nullptr;
    throw FailedPreconditionError(
        str("variable '", options_.name, "' was made outside of the scope of ", frame->core->name(),
            ", so its replicas cannot ", operation, " it; make it under strategy.scope()"));
  }
  throw FailedPreconditionError(
      str("Mixing different tf.distribute.Strategy objects: variable '", options_.name,
          "' was made under a ", core_->name(), " and cannot be used (", operation,
          ") in the scope of another ", frame->core->name()));
}

}  // namespace cohort::internal
