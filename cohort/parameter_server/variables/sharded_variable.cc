#include "cohort/parameter_server/variables/sharded_variable.h"

#include <ATen/ops/cat.h>

#include <ostream>
#include <utility>

#include "cohort/core/error.h"
#include "cohort/distribute/variables/variable_impl.h"

namespace cohort::distribute {

using internal::AssignOp;
using internal::ScatterOp;
using internal::str;

// In a checkpoint: slices of one tensor.
class ShardedVariable::Impl final : public train::Trackable {
 public:
  Impl(std::vector<Variable> variables, std::string name)
      : variables(std::move(variables)), name(std::move(name)) {
    int64_t rows = 0;
    for (const Variable& variable : this->variables) {
      offsets.push_back(rows);
      rows += variable.shape()[0];
    }
    shape = this->variables[0].shape();
    shape[0] = rows;
  }

  bool has_checkpoint_values() const override { return true; }
  std::vector<train::CheckpointValue> checkpoint_values() override {
    train::CheckpointValue saved{
        .attribute = train::kVariableValue, .full_name = name, .full_shape = shape, .parts = {}};
    for (size_t i = 0; i < variables.size(); ++i) {
      train::CheckpointValue::Part part{Leaf(variables[i].value().detach())};
      if (variables.size() > 1) part.slice = slice_of(i);
      saved.parts.push_back(std::move(part));
    }
    return {std::move(saved)};
  }
  void prepare_restore(train::RestoreSource& source) override {
    for (size_t i = 0; i < variables.size(); ++i) {
      source.read_slice(train::kVariableValue, shape, slice_of(i), variables[i].dtype(),
                        [variable = variables[i]](const Tensor& value) { variable.assign(value); });
    }
  }
  std::shared_ptr<train::SaveGroup> save_group() const override {
    return variables[0].impl().save_group();
  }

  train::TensorSlice slice_of(size_t i) const {
    train::TensorSlice slice{.start = std::vector<int64_t>(shape.size(), 0), .length = shape};
    slice.start[0] = offsets[i];
    slice.length[0] = variables[i].shape()[0];
    return slice;
  }

  // The members of `ids` that part i has, as places in `ids`.
  Tensor places_in(size_t i, const Tensor& ids) const {
    const int64_t begin = offsets[i];
    const int64_t end = begin + variables[i].shape()[0];
    return (ids >= begin).logical_and(ids < end).nonzero().flatten();
  }

  const std::vector<Variable> variables;
  const std::string name;
  std::vector<int64_t> offsets;  // of the parts' first rows
  std::vector<int64_t> shape;
  Variable whole;  // of which the variables are the shards; empty: they are variables of their own
};

namespace {

void check_parts(const std::vector<Variable>& variables, const std::string& name) {
  if (variables.empty()) {
    throw InvalidArgumentError(
        str("ShardedVariable '", name, "' needs one variable or more, but got none"));
  }
  for (size_t i = 0; i < variables.size(); ++i) {
    if (!variables[i]) {
      throw InvalidArgumentError(
          str("variable ", i, " of ShardedVariable '", name, "' is an empty handle"));
    }
    const auto form = [](const Variable& variable) {
      return str("'", variable.name(), "' ", internal::dtype_name(variable.dtype()), " ",
                 internal::shape_str(variable.shape()));
    };
    std::vector<int64_t> first = variables[0].shape(), shape = variables[i].shape();
    if (shape.empty()) {
      throw InvalidArgumentError(
          str("ShardedVariable '", name, "': ", form(variables[i]), " has rank 0 and no rows"));
    }
    first[0] = shape[0];
    if (first == shape && variables[0].dtype() == variables[i].dtype()) continue;
    throw InvalidArgumentError(str("ShardedVariable '", name, "': ", form(variables[i]),
                                   " does not fit ", form(variables[0]),
                                   "; parts have one dtype and differ in axis 0 alone"));
  }
}

void apply(const Variable& variable, AssignOp op, const Tensor& value) {
  variable.impl().assign(op, value);
}

}  // namespace

ShardedVariable::ShardedVariable(std::vector<Variable> variables, std::string name) {
  check_parts(variables, name);
  impl_ = std::make_shared<Impl>(std::move(variables), std::move(name));
}

ShardedVariable::ShardedVariable(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}

ShardedVariable ShardedVariable::of(const Variable& variable) {
  std::vector<Variable> shards = variable.shards();
  check_parts(shards, variable.name());
  const auto impl = std::make_shared<Impl>(std::move(shards), variable.name());
  impl->whole = variable;
  return ShardedVariable(impl);
}

const std::vector<Variable>& ShardedVariable::variables() const& { return impl_->variables; }
const std::string& ShardedVariable::name() const { return impl_->name; }
std::vector<int64_t> ShardedVariable::shape() const { return impl_->shape; }
DType ShardedVariable::dtype() const { return impl_->variables[0].dtype(); }

Tensor ShardedVariable::value() const {
  if (impl_->whole) return impl_->whole.value();
  if (impl_->variables.size() == 1) return impl_->variables[0].value();
  std::vector<Tensor> parts;
  for (const Variable& variable : impl_->variables) parts.push_back(variable.value());
  return at::cat(parts);
}

namespace {

void assign_parts(const std::vector<Variable>& variables, const std::vector<int64_t>& shape,
                  const std::string& name, AssignOp op, const Tensor& value) {
  if (!value.defined() || value.sizes() != shape) {
    throw InvalidArgumentError(str("cannot ", internal::assign_name(op), " ",
                                   internal::describe(value), " to ShardedVariable '", name,
                                   "', which is ", internal::shape_str(shape)));
  }
  int64_t begin = 0;
  for (const Variable& variable : variables) {
    const int64_t rows = variable.shape()[0];
    apply(variable, op, value.narrow(0, begin, rows));
    begin += rows;
  }
}

}  // namespace

const ShardedVariable& ShardedVariable::assign(const Tensor& value) const {
  if (impl_->whole) {
    apply(impl_->whole, AssignOp::kAssign, value);
  } else {
    assign_parts(variables(), impl_->shape, name(), AssignOp::kAssign, value);
  }
  return *this;
}
const ShardedVariable& ShardedVariable::assign_add(const Tensor& delta) const {
  if (impl_->whole) {
    apply(impl_->whole, AssignOp::kAdd, delta);
  } else {
    assign_parts(variables(), impl_->shape, name(), AssignOp::kAdd, delta);
  }
  return *this;
}
const ShardedVariable& ShardedVariable::assign_sub(const Tensor& delta) const {
  if (impl_->whole) {
    apply(impl_->whole, AssignOp::kSub, delta);
  } else {
    assign_parts(variables(), impl_->shape, name(), AssignOp::kSub, delta);
  }
  return *this;
}

const ShardedVariable& ShardedVariable::scatter(ScatterOp op, const IndexedSlices& slices) const {
  const char* what = internal::scatter_name(op);
  if (slices.indices.defined() && slices.indices.dim() != 1) {
    throw InvalidArgumentError(str(what, " of ShardedVariable '", name(),
                                   "' takes indices [n], not ",
                                   internal::describe(slices.indices)));
  }
  if (impl_->whole) {
    impl_->whole.impl().scatter(op, slices);
    return *this;
  }
  const IndexedSlices checked =
      internal::checked_slices(slices, impl_->shape, dtype(), what, name());
  for (size_t i = 0; i < variables().size(); ++i) {
    const Tensor places = impl_->places_in(i, checked.indices);
    if (places.numel() == 0) continue;
    variables()[i].impl().scatter(
        op, {.values = checked.values.index_select(0, places.to(checked.values.device())),
             .indices = checked.indices.index_select(0, places) - impl_->offsets[i]});
  }
  return *this;
}

const ShardedVariable& ShardedVariable::scatter_add(const IndexedSlices& slices) const {
  return scatter(ScatterOp::kAdd, slices);
}
const ShardedVariable& ShardedVariable::scatter_sub(const IndexedSlices& slices) const {
  return scatter(ScatterOp::kSub, slices);
}
const ShardedVariable& ShardedVariable::scatter_update(const IndexedSlices& slices) const {
  return scatter(ScatterOp::kUpdate, slices);
}
const ShardedVariable& ShardedVariable::scatter_min(const IndexedSlices& slices) const {
  return scatter(ScatterOp::kMin, slices);
}
const ShardedVariable& ShardedVariable::scatter_max(const IndexedSlices& slices) const {
  return scatter(ScatterOp::kMax, slices);
}
const ShardedVariable& ShardedVariable::scatter_mul(const IndexedSlices& slices) const {
  return scatter(ScatterOp::kMul, slices);
}
const ShardedVariable& ShardedVariable::scatter_div(const IndexedSlices& slices) const {
  return scatter(ScatterOp::kDiv, slices);
}

// The rows of each part in one read, then put into the order of the ids.
Tensor ShardedVariable::rows(const Tensor& ids) const {
  if (impl_->whole) return impl_->whole.impl().read_rows(ids);
  const Tensor flat = ids.to(at::kCPU, int64);
  std::vector<Tensor> parts, places;
  for (size_t i = 0; i < variables().size(); ++i) {
    Tensor of_part = impl_->places_in(i, flat);
    if (of_part.numel() == 0) continue;
    parts.push_back(
        variables()[i].impl().read_rows(flat.index_select(0, of_part) - impl_->offsets[i]));
    places.push_back(std::move(of_part));
  }
  if (parts.empty()) return variables()[0].impl().read_rows(flat);
  if (parts.size() == 1) return parts[0];
  const Tensor together = at::cat(parts);
  const Tensor order = at::cat(places).argsort();
  return together.index_select(0, order.to(together.device()));
}

Tensor ShardedVariable::sparse_read(const Tensor& indices) const {
  internal::check_row_ids(indices, impl_->shape, "sparse_read", name());
  if (indices.dim() != 1) {
    throw InvalidArgumentError(str("sparse_read of ShardedVariable '", name(),
                                   "' takes indices [n], not ", internal::describe(indices)));
  }
  return rows(indices);
}

std::shared_ptr<train::Trackable> ShardedVariable::trackable() const {
  if (impl_->whole) return impl_->whole.trackable();
  return impl_;
}

std::ostream& operator<<(std::ostream& out, const ShardedVariable& variable) {
  out << "ShardedVariable:[";
  for (size_t i = 0; i < variable.variables().size(); ++i) {
    out << (i == 0 ? "\n" : ",\n") << "  " << variable.variables()[i];
  }
  return out << "\n]";
}

}  // namespace cohort::distribute
