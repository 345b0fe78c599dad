#include "cohort/distribute/variables/local_variable.h"

#include <ATen/core/grad_mode.h>

#include <utility>

#include "cohort/core/cpu/huge_pages.h"
#include "cohort/core/program/task.h"
#include "cohort/distribute/core/strategy_core.h"

namespace cohort::internal {

using distribute::VariableSpec;

namespace {

// A copy where the value is another view of the target's memory, as its transpose is: libtorch may
// refuse to read elements that it has already written.
Tensor apart_from(const Tensor& target, const Tensor& value) {
  if (!value.is_alias_of(target)) return value;
  const bool is_same = value.scalar_type() == target.scalar_type() &&
                       value.storage_offset() == target.storage_offset() &&
                       value.strides() == target.strides();
  return is_same ? value : value.clone();
}

}  // namespace

LocalVariable::LocalVariable(std::shared_ptr<StrategyCore> core, VariableSpec spec,
                             std::vector<Tensor> components)
    : VariableImpl(std::move(core), std::move(spec)),
      owner_(this->core()->is_default() ? nullptr : &Task::current()) {
  set_components(std::move(components));
}

void LocalVariable::follow_replicas() {
  StepTransaction* const transaction = core()->transaction();
  if (transaction != nullptr) transaction->add(*this, name());
}

LocalVariable::~LocalVariable() {
  StepTransaction* const transaction = core()->transaction();
  if (transaction == nullptr) return;
  transaction->remove(*this);
  transaction->forget(*this);
}

void LocalVariable::set_components(std::vector<Tensor> components) {
  components_ = std::move(components);
  leaves_.clear();
  distinct_.clear();
  for (size_t i = 0; i < components_.size(); ++i) {
    leaves_.push_back(make_leaf(components_[i]));
    bool shared = false;
    for (const size_t j : distinct_) shared |= components_[i].is_alias_of(components_[j]);
    if (!shared) distinct_.push_back(i);
  }
  for (const size_t i : distinct_) {
    const Tensor& component = components_[i];
    if (component.is_cpu()) prefer_huge_pages(component.data_ptr(), component.nbytes());
  }
}

void LocalVariable::check_task() const {
  if (owner_ == nullptr || owner_ == &Task::current()) return;
  throw_of_other_task(str("variable '", name(), "'"), *owner_);
}

Replica* LocalVariable::owners_replica(const char* operation) const {
  Replica* const replica = calling_replica(operation);
  if (replica != nullptr) check_task();
  return replica;
}

Tensor LocalVariable::make_leaf(const Tensor& component) const {
  Tensor leaf = component.variable_data();
  leaf.set_requires_grad(trainable());
  return leaf;
}

std::string LocalVariable::component_name(size_t replica) const {
  return replica == 0 ? name() + ":0" : str(name(), "/replica_", replica, ":0");
}

void LocalVariable::bind_component(size_t replica, Tensor leaf) {
  if (replica >= components_.size()) {
    throw InvalidArgumentError(str("variable '", name(), "' has ", components_.size(),
                                   " components, so that none can be bound for replica ", replica));
  }
  const Tensor& component = components_[replica];
  if (leaf.sizes() != component.sizes() || leaf.scalar_type() != component.scalar_type()) {
    throw InvalidArgumentError(str("variable '", component_name(replica), "' is ",
                                   describe(component), ", but the tensor to bind is ",
                                   describe(leaf)));
  }
  at::NoGradGuard no_grad;
  leaf.set_data(component);
  leaves_[replica] = std::move(leaf);
  is_bound_ = true;
}

void LocalVariable::mark_written(size_t replica) const {
  leaves_[replica].unsafeGetTensorImpl()->bump_version();
}

const Tensor* LocalVariable::component_of(int replica_id) const {
  const std::vector<Tensor>& kept = kept_components();
  const int first = kept.size() == components_.size() ? core()->replica_id(0) : 0;
  const bool has = replica_id >= first && replica_id - first < static_cast<int>(kept.size());
  return has ? &kept[static_cast<size_t>(replica_id - first)] : nullptr;
}

void LocalVariable::about_to_write() const {
  StepTransaction* const transaction = is_of_each_replica() ? nullptr : core()->transaction();
  if (transaction != nullptr) transaction->keep(const_cast<LocalVariable&>(*this));
}

char* LocalVariable::keep_all() const {
  StepTransaction* const transaction = is_of_each_replica() ? nullptr : core()->transaction();
  if (transaction == nullptr) return nullptr;
  return transaction->keep_all_of(const_cast<LocalVariable&>(*this));
}

void LocalVariable::keep_parts(std::span<const collective::SliceRange> parts) const {
  StepTransaction* const transaction = is_of_each_replica() ? nullptr : core()->transaction();
  if (transaction == nullptr) return;
  transaction->keep_parts(const_cast<LocalVariable&>(*this), parts);
}

void LocalVariable::put_back() {
  const at::NoGradGuard no_grad;
  for (const size_t i : distinct_) {
    if (i > 0) components_[i].copy_(components_[0]);
    mark_sharers(components_[i]);
  }
}

// Components on one device share their memory, or each has its own.
void LocalVariable::host(collective::ReplicaRange range) {
  if (is_bound_) {
    throw UnimplementedError(str(
        "variable '", name(), "' is a parameter of a module, of which each replica has one; such ",
        "replicas cannot move to another worker where theirs is lost; use Keras layers"));
  }
  const bool shares = distinct_.size() == 1;
  std::vector<Tensor> components = {components_[0]};
  while (components.size() < static_cast<size_t>(range.size())) {
    components.push_back(shares ? components_[0] : components_[0].clone());
  }
  set_components(std::move(components));
}

void LocalVariable::write(size_t replica, AssignOp op, const Tensor& value) {
  about_to_write();
  apply(components_[replica], op, value);
  mark_sharers(components_[replica]);
}

void LocalVariable::apply(const Tensor& target, AssignOp op, const Tensor& value) {
  at::NoGradGuard no_grad;
  const auto operand = [&] {
    return apart_from(target, value.to(target.device(), target.scalar_type()));
  };
  switch (op) {
    case AssignOp::kAssign:
      target.copy_(apart_from(target, value));
      break;
    case AssignOp::kAdd:
      target.add_(operand());
      break;
    case AssignOp::kSub:
      target.sub_(operand());
      break;
  }
}

bool LocalVariable::add_in_place(size_t replica, const at::Scalar& delta) {
  const Tensor& target = components_[replica];
  if (target.numel() != 1) return false;
  about_to_write();
  if (!target.is_cpu()) {
    if (!target.is_floating_point()) return false;
    const at::NoGradGuard no_grad;
    target.add_(delta);
  } else if (target.scalar_type() == at::kFloat) {
    *target.data_ptr<float>() += delta.toFloat();
  } else if (target.scalar_type() == at::kDouble) {
    *target.data_ptr<double>() += delta.toDouble();
  } else {
    return false;
  }
  mark_sharers(target);
  return true;
}

void LocalVariable::write_rows(size_t replica, ScatterOp op, const IndexedSlices& slices) {
  about_to_write();
  scatter_rows(components_[replica], op, slices);
  mark_sharers(components_[replica]);
}

void LocalVariable::mark_sharers(const Tensor& written) const {
  for (size_t i = 0; i < components_.size(); ++i) {
    if (components_[i].is_alias_of(written)) mark_written(i);
  }
}

std::vector<train::CheckpointValue> LocalVariable::checkpoint_values() {
  if (calling_replica("save") != nullptr) {
    throw FailedPreconditionError(
        str("variable '", name(), "' was to be saved in a step; save checkpoints after it"));
  }
  return {{.attribute = train::kVariableValue,
           .full_name = name(),
           .parts = {{Leaf(read().detach())}}}};
}

void LocalVariable::write_restored(const Tensor& value) {
  for (const size_t i : distinct_) write(i, AssignOp::kAssign, value);
}

void LocalVariable::prepare_restore(train::RestoreSource& source) {
  if (!source.late() && calling_replica("restore") != nullptr) {
    throw FailedPreconditionError(str("variable '", name(), "' was to be restored in a ",
                                      "step; restore checkpoints before it"));
  }
  source.read(train::kVariableValue, shape(), dtype(),
              [this](const Tensor& value) { write_restored(value); });
}

}  // namespace cohort::internal
