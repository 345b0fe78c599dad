// A variable: a tensor that training changes, stored as the strategy of its scope decides.
//
//   auto scope = strategy.scope();
//   Variable weight(random::normal({3, 2}), {.name = "weight"});
//   Variable count(0., {.synchronization = VariableSynchronization::ON_READ,
//                       .aggregation = VariableAggregation::SUM});
//   // in a step:
//   Tensor y = matmul(x, weight) + 1;         // this replica's own autograd leaf
//   count.assign_add(1);                      // this replica's own component
#pragma once

#include <functional>
#include <initializer_list>
#include <iosfwd>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "cohort/core/export.h"
#include "cohort/core/structure/number_scalar.h"
#include "cohort/core/structure/tensor.h"
#include "cohort/distribute/core/variable_spec.h"
#include "cohort/distribute/values/values.h"
#include "cohort/ops/indexed_slices.h"
#include "cohort/ops/literal.h"

namespace cohort {
namespace internal {
class VariableImpl;
}
namespace train {
class Trackable;
}

namespace distribute {

// A handle: copies name the same variable. A default-constructed handle names none; using it is a
// FailedPrecondition. Where a Tensor is expected it stands for value(), as in TensorFlow; with
// operators, too (variable_operators.h).
//
// Reads and writes depend on the context (ReplicaContext, cross-replica, outside):
// - value(): in a replica its own component, which records into tapes; else, for ON_WRITE the
//   primary component, for ON_READ the aggregate (InvalidArgument where aggregation is NONE). A
//   component is memory that later writes change, also in what `run` has returned: clone() what
//   stays.
// - assign*(): cross-replica, every component; ON_READ with SUM: assign writes value / components,
//   assign_add and assign_sub are InvalidArgument. In a replica, ON_READ: its own component.
//   ON_WRITE: COLLECTIVE, the replicas' values are aggregated and the result assigned everywhere;
//   aggregation NONE is InvalidArgument, and so is a number (but 0) with SUM, which is no replica's
//   part: pass that as a tensor.
//
// Thread safety: reads from any thread; writes from one thread, or from all replicas of a step.
// Errors: InvalidArgument (shape or dtype of a value), FailedPrecondition (empty handle, another
// strategy's replica), DeadlineExceeded and Aborted (collective writes).
class COHORT_API Variable {
 public:
  Variable() = default;
  // Creates the variable in the current strategy. Inside `run`: COLLECTIVE; the k-th variable that
  // a replica creates is the k-th of all others, and replica 0's value is used for all.
  // Errors: InvalidArgument (NONE synchronization under a strategy that mirrors; undefined value).
  explicit Variable(const Tensor& initial_value, VariableOptions options = {});
  // A variable of a number, or of lists of numbers: Variable(1.), Variable({{1., 2.}, {3., 4.}}).
  // Floating numbers are float32, int is int32, as tf::constant's, if options.dtype says nothing
  // else. Errors: InvalidArgument (lists of different shapes).
  template <internal::LiteralNumber Number>
  explicit Variable(Number initial_value, VariableOptions options = {})
      : Variable(NumberLiteral(initial_value), std::move(options), 0) {}
  explicit Variable(std::initializer_list<NumberLiteral> initial_value,
                    VariableOptions options = {});
  // `initializer` runs once, whatever the number of replicas. It runs before the strategy knows
  // anything of the variable, since only its result gives the shape. For large variables declare
  // the shape, as below.
  explicit Variable(const std::function<Tensor()>& initializer, VariableOptions options = {});
  // Errors: also InvalidArgument (the initializer's result has another shape or dtype).
  Variable(const VariableSpec& spec, const VariableInitializer& initializer);
  explicit Variable(std::shared_ptr<internal::VariableImpl> impl) : impl_(std::move(impl)) {}

  explicit operator bool() const { return impl_ != nullptr; }

  const std::string& name() const;
  std::vector<int64_t> shape() const;
  DType dtype() const;
  bool trainable() const;
  VariableSynchronization synchronization() const;
  VariableAggregation aggregation() const;

  Tensor value() const;
  operator Tensor() const { return value(); }
  // Each returns this handle, for what follows: v.assign_add(1).value().
  const Variable& assign(const Tensor& value) const;
  const Variable& assign_add(const Tensor& delta) const;
  const Variable& assign_sub(const Tensor& delta) const;
  const Variable& assign(const Mirrored<Tensor>& value) const { return assign(value.item()); }
  // A number for every element. Errors: InvalidArgument (the dtype cannot hold it: 0.5 or 3e9 for
  // int32, -1 for uint8, as in `constant`; names it and the variable).
  const Variable& assign(const at::Scalar& value) const;
  const Variable& assign_add(const at::Scalar& delta) const;
  const Variable& assign_sub(const at::Scalar& delta) const;
  template <class T>
  requires std::is_arithmetic_v<T>
  const Variable& assign(T value) const { return assign(internal::number_scalar(value)); }
  template <class T>
  requires std::is_arithmetic_v<T>
  const Variable& assign_add(T delta) const { return assign_add(internal::number_scalar(delta)); }
  template <class T>
  requires std::is_arithmetic_v<T>
  const Variable& assign_sub(T delta) const { return assign_sub(internal::number_scalar(delta)); }

  // value[indices[i]] = value[indices[i]] + values[i], and the same with other operations, one
  // after another. Rows that are not named stay as they are.
  // Shapes: indices [n] of int32 or int64; values [n, ..], where the variable is [rows, ..].
  // Across replicas every component is written. In a replica, ON_WRITE: COLLECTIVE; the replicas'
  // rows one after another, in replica order (SUM), with values divided by the number of replicas
  // (MEAN), or replica 0's (ONLY_FIRST_REPLICA); NONE is InvalidArgument.
  // Errors: InvalidArgument (an index outside of the rows; shapes; dtypes), Unimplemented (ON_READ
  // under a strategy; min, max and update in a replica with SUM or MEAN).
  const Variable& scatter_add(const IndexedSlices& slices) const;
  const Variable& scatter_sub(const IndexedSlices& slices) const;
  const Variable& scatter_update(const IndexedSlices& slices) const;
  const Variable& scatter_min(const IndexedSlices& slices) const;
  const Variable& scatter_max(const IndexedSlices& slices) const;
  const Variable& scatter_mul(const IndexedSlices& slices) const;
  // Integers are divided towards 0.
  const Variable& scatter_div(const IndexedSlices& slices) const;

  // value[indices]. Where ps tasks keep the variable, those rows alone are read. Recorded by tapes;
  // the gradient has those rows alone, if the variable is a matrix or is kept by ps tasks.
  // Shapes: indices [..] of int32 or int64 -> [.., row..], where the variable is [rows, row..].
  // Errors: InvalidArgument (rank 0; an index outside of the rows: names it; another dtype).
  Tensor sparse_read(const Tensor& indices) const;

  // The parts in which ps tasks keep it, "name/part_0" and so on, in the order of their rows; or
  // the variable alone. See ShardedVariable. A tape takes gradients of the variable, not of its
  // parts.
  std::vector<Variable> shards() const;
  // "/job:ps/replica:0/task:1/device:CPU:0": of the first component.
  // Errors: FailedPrecondition (its shards lie on several devices).
  std::string device() const;

  // The tensor by which tapes know the variable in this context. Where only rows of the variable
  // are read, it has the variable's shape and no values.
  Tensor tape_source() const;

  // A copy of every local component, detached; for tests and tools. A variable that other processes
  // keep has one, its value.
  PerReplica<Tensor> components() const;

  // Whether both are handles of the same variable; tf::equal(v, w) compares their values.
  bool operator==(const Variable& other) const { return impl_ == other.impl_; }

  internal::VariableImpl& impl() const;
  const std::shared_ptr<internal::VariableImpl>& impl_ptr() const { return impl_; }
  // For train::Checkpoint. Errors: FailedPrecondition (empty handle).
  std::shared_ptr<train::Trackable> trackable() const;

 private:
  // The last parameter tells it from the public ones.
  Variable(const NumberLiteral& initial_value, VariableOptions options, int);

  std::shared_ptr<internal::VariableImpl> impl_;
};

// MirroredVariable:{ 0: <Variable 'w:0' shape=[2] dtype=float32 value=[1,2]>, ... }; plain with one
// component.
COHORT_API std::ostream& operator<<(std::ostream& out, const Variable& variable);

}  // namespace distribute

using distribute::Variable;

}  // namespace cohort
