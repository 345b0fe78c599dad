#include "cohort/distribute/variables/variable.h"

#include <ostream>

#include "cohort/core/error.h"
#include "cohort/core/structure/structure.h"
#include "cohort/distribute/variables/autocast.h"
#include "cohort/distribute/variables/local_variable.h"
#include "cohort/distribute/variables/make_variable.h"

namespace cohort::distribute {
namespace {

using internal::AssignOp;
using internal::LocalVariable;
using internal::ScatterOp;
using internal::VariableImpl;

const Variable& assigned(const Variable& variable, AssignOp op, const Tensor& value) {
  variable.impl().assign(op, value);
  return variable;
}

const Variable& assigned(const Variable& variable, AssignOp op, const at::Scalar& number) {
  VariableImpl& impl = variable.impl();
  impl.assign_number(op, impl.checked_number(op, number));
  return variable;
}

const Variable& scattered(const Variable& variable, ScatterOp op, const IndexedSlices& slices) {
  variable.impl().scatter(op, slices);
  return variable;
}

}  // namespace

Variable::Variable(const Tensor& initial_value, VariableOptions options)
    : Variable(internal::make_variable(initial_value, options)) {}

Variable::Variable(const NumberLiteral& initial_value, VariableOptions options, int)
    : Variable(initial_value.tensor(), std::move(options)) {}

Variable::Variable(std::initializer_list<NumberLiteral> initial_value, VariableOptions options)
    : Variable(NumberLiteral(initial_value), std::move(options), 0) {}

Variable::Variable(const std::function<Tensor()>& initializer, VariableOptions options)
    : Variable(internal::make_variable(initializer, options)) {}

Variable::Variable(const VariableSpec& spec, const VariableInitializer& initializer)
    : Variable(internal::make_variable(spec, initializer)) {}

std::shared_ptr<train::Trackable> Variable::trackable() const {
  impl();
  return impl_;
}

VariableImpl& Variable::impl() const {
  if (impl_ == nullptr) {
    throw FailedPreconditionError(
        "an empty Variable handle was used: none was made yet, or it was moved from; make the "
        "variable, or build the layer, first");
  }
  return *impl_;
}

const std::string& Variable::name() const { return impl().name(); }
std::vector<int64_t> Variable::shape() const { return impl().shape().vec(); }
DType Variable::dtype() const { return impl().dtype(); }
bool Variable::trainable() const { return impl().trainable(); }
VariableSynchronization Variable::synchronization() const {
  return impl().options().synchronization;
}
VariableAggregation Variable::aggregation() const { return impl().options().aggregation; }

Tensor Variable::value() const {
  const VariableImpl& own = impl();
  return own.spec().autocast ? internal::autocast_value(own.read()) : own.read();
}
const Variable& Variable::assign(const Tensor& value) const {
  return assigned(*this, AssignOp::kAssign, value);
}
const Variable& Variable::assign_add(const Tensor& delta) const {
  return assigned(*this, AssignOp::kAdd, delta);
}
const Variable& Variable::assign_sub(const Tensor& delta) const {
  return assigned(*this, AssignOp::kSub, delta);
}
const Variable& Variable::assign(const at::Scalar& value) const {
  return assigned(*this, AssignOp::kAssign, value);
}
const Variable& Variable::assign_add(const at::Scalar& delta) const {
  return assigned(*this, AssignOp::kAdd, delta);
}
const Variable& Variable::assign_sub(const at::Scalar& delta) const {
  return assigned(*this, AssignOp::kSub, delta);
}

const Variable& Variable::scatter_add(const IndexedSlices& slices) const {
  return scattered(*this, ScatterOp::kAdd, slices);
}
const Variable& Variable::scatter_sub(const IndexedSlices& slices) const {
  return scattered(*this, ScatterOp::kSub, slices);
}
const Variable& Variable::scatter_update(const IndexedSlices& slices) const {
  return scattered(*this, ScatterOp::kUpdate, slices);
}
const Variable& Variable::scatter_min(const IndexedSlices& slices) const {
  return scattered(*this, ScatterOp::kMin, slices);
}
const Variable& Variable::scatter_max(const IndexedSlices& slices) const {
  return scattered(*this, ScatterOp::kMax, slices);
}
const Variable& Variable::scatter_mul(const IndexedSlices& slices) const {
  return scattered(*this, ScatterOp::kMul, slices);
}
const Variable& Variable::scatter_div(const IndexedSlices& slices) const {
  return scattered(*this, ScatterOp::kDiv, slices);
}

Tensor Variable::sparse_read(const Tensor& indices) const {
  internal::check_row_ids(indices, impl().shape(), "sparse_read", name());
  const Tensor rows = impl().read_rows(indices);
  return impl().spec().autocast ? internal::autocast_value(rows) : rows;
}

std::vector<Variable> Variable::shards() const {
  std::vector<Variable> shards;
  for (auto& shard : impl().shards()) shards.emplace_back(std::move(shard));
  if (shards.empty()) shards.push_back(*this);
  return shards;
}

std::string Variable::device() const { return impl().device(); }
Tensor Variable::tape_source() const { return impl().tape_source(); }

PerReplica<Tensor> Variable::components() const {
  if (!impl().is_local()) return PerReplica<Tensor>({value().detach().clone()});
  const LocalVariable& local = impl().local();
  PerReplica<Tensor>::Values values;
  for (size_t i = 0; i < local.num_copies(); ++i) values.push_back(local.component(i).clone());
  return PerReplica<Tensor>(std::move(values));
}

std::ostream& operator<<(std::ostream& out, const Variable& variable) {
  if (!variable) return out << "<empty Variable>";
  const VariableImpl& impl = variable.impl();
  const auto print = [&](const std::string& name, const Tensor& value) {
    out << "<Variable '" << name << "' shape=" << internal::shape_str(impl.shape())
        << " dtype=" << internal::dtype_name(impl.dtype()) << " value=" << Structure(value) << ">";
  };
  if (!impl.is_local()) {
    print(impl.name() + ":0", impl.read().detach());
    return out;
  }
  const LocalVariable& local = impl.local();
  const auto print_one = [&](size_t i) { print(local.component_name(i), local.component(i)); };
  if (local.num_copies() == 1) {
    print_one(0);
  } else {
    internal_values::print_components(out, impl.kind(), local.num_copies(), print_one);
  }
  return out;
}

}  // namespace cohort::distribute
