#include "cohort/distribute/variable.h"

#include <ATen/ops/full.h>

#include <ostream>

#include "cohort/core/structure.h"
#include "cohort/distribute/context_stack.h"
#include "cohort/distribute/strategy_core.h"
#include "cohort/distribute/variable_impl.h"
#include "cohort/ops/random.h"

namespace cohort::distribute {
namespace {

using internal::AssignOp;
using internal::StrategyCore;
using internal::str;
using internal::VariableImpl;

std::shared_ptr<VariableImpl> create(StrategyCore& core, const std::function<Tensor()>& initializer,
                                     VariableOptions options) {
  const Tensor value = initializer();
  if (!value.defined()) {
    throw InvalidArgumentError(
        str("variable '", options.name, "' needs an initial value, but got an undefined tensor"));
  }
  options = internal::resolve_options(std::move(options), value.scalar_type());
  return core.create_variable(value.detach(), std::move(options));
}

// In a step every replica comes here with its own initializer; replica 0's makes the value.
std::shared_ptr<VariableImpl> create_in_context(const std::function<Tensor()>& initializer,
                                                const VariableOptions& options) {
  const std::shared_ptr<StrategyCore> owner = internal::current_core();
  StrategyCore& core = *owner;
  ReplicaContext* replica = get_replica_context();
  if (core.is_default() || replica == nullptr) return create(core, initializer, options);
  struct Frame {
    const std::function<Tensor()>* initializer;
    const VariableOptions* options;
    std::shared_ptr<VariableImpl> result;
  } mine{&initializer, &options, nullptr};
  replica->merge("creation of a variable", &mine, [&](Strategy&, std::span<void* const> all) {
    const Frame& first = *static_cast<Frame*>(all[0]);
    // Not the stream of the replica that happened to come last.
    const auto generator = random::RandomGenerator::from_seed(internal::next_seed());
    internal::ScopedGenerator scoped(generator);
    const auto result = create(core, *first.initializer, *first.options);
    for (void* one : all) static_cast<Frame*>(one)->result = result;
  });
  return mine.result;
}

Tensor scalar_for(const Variable& variable, double value) {
  return at::full(variable.impl().shape(), value, at::dtype(variable.dtype()));
}

}  // namespace

Variable::Variable(const Tensor& initial_value, VariableOptions options)
    : Variable([&] { return initial_value; }, std::move(options)) {}

Variable::Variable(const std::function<Tensor()>& initializer, VariableOptions options)
    : impl_(create_in_context(initializer, options)) {}

std::shared_ptr<train::Trackable> Variable::trackable() const {
  impl();
  return impl_;
}

VariableImpl& Variable::impl() const {
  if (impl_ == nullptr) {
    throw FailedPreconditionError(
        "an empty Variable handle was used; make the variable, or build the layer, first");
  }
  return *impl_;
}

const std::string& Variable::name() const { return impl().options().name; }
std::vector<int64_t> Variable::shape() const { return impl().shape().vec(); }
DType Variable::dtype() const { return impl().dtype(); }
bool Variable::trainable() const { return impl().trainable(); }
VariableSynchronization Variable::synchronization() const {
  return impl().options().synchronization;
}
VariableAggregation Variable::aggregation() const { return impl().options().aggregation; }

Tensor Variable::value() const { return impl().read(); }
void Variable::assign(const Tensor& value) const { impl().assign(AssignOp::kAssign, value); }
void Variable::assign_add(const Tensor& delta) const { impl().assign(AssignOp::kAdd, delta); }
void Variable::assign_sub(const Tensor& delta) const { impl().assign(AssignOp::kSub, delta); }
void Variable::assign(double value) const { assign(scalar_for(*this, value)); }
void Variable::assign_add(double delta) const { assign_add(scalar_for(*this, delta)); }
void Variable::assign_sub(double delta) const { assign_sub(scalar_for(*this, delta)); }

PerReplica<Tensor> Variable::components() const {
  PerReplica<Tensor>::Values values;
  for (size_t i = 0; i < impl().num_components(); ++i) values.push_back(impl().component(i).clone());
  return PerReplica<Tensor>(std::move(values));
}

std::ostream& operator<<(std::ostream& out, const Variable& variable) {
  if (!variable) return out << "<empty Variable>";
  const VariableImpl& impl = variable.impl();
  const auto print_one = [&](size_t i) {
    out << "<Variable '" << impl.component_name(i)
        << "' shape=" << internal::shape_str(impl.shape())
        << " dtype=" << internal::dtype_name(impl.dtype())
        << " value=" << Structure(impl.component(i)) << ">";
  };
  if (impl.num_components() == 1) {
    print_one(0);
  } else {
    internal_values::print_components(out, impl.kind(), impl.num_components(), print_one);
  }
  return out;
}

}  // namespace cohort::distribute
