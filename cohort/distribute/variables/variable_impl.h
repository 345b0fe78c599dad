// The implementation behind a Variable.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cohort/core/structure/tensor.h"
#include "cohort/distribute/core/variable_spec.h"
#include "cohort/distribute/variables/scatter.h"
#include "cohort/train/objects/trackable.h"

namespace cohort::internal {

class LocalVariable;
class Replica;
class StrategyCore;

enum class AssignOp { kAssign, kAdd, kSub };

// A variable, wherever its values are. Code that needs the values in this process's memory calls
// `local()`; all other code works with any kind.
// Thread safety: see Variable.
class VariableImpl : public train::Trackable {
 public:
  // `spec` is complete: trainable has a value, synchronization is not AUTO.
  VariableImpl(std::shared_ptr<StrategyCore> core, distribute::VariableSpec spec);
  VariableImpl(const VariableImpl&) = delete;
  VariableImpl& operator=(const VariableImpl&) = delete;
  std::shared_ptr<train::SaveGroup> save_group() const override;  // the strategy's

  const distribute::VariableSpec& spec() const { return spec_; }
  const distribute::VariableOptions& options() const { return spec_.options; }
  const std::string& name() const { return spec_.options.name; }
  at::IntArrayRef shape() const { return spec_.shape; }
  DType dtype() const { return spec_.dtype; }
  bool trainable() const { return *spec_.options.trainable; }
  const std::shared_ptr<StrategyCore>& core() const { return core_; }

  // "MirroredVariable"; for printing.
  virtual const char* kind() const = 0;
  // The calls behind Variable::value, assign, assign_add and assign_sub, and scatter_add and its
  // like.
  virtual Tensor read() const = 0;
  virtual void assign(AssignOp op, const Tensor& value) = 0;
  // The number as an element of this variable.
  // Errors: InvalidArgument (its dtype cannot hold it).
  at::Scalar checked_number(AssignOp op, const at::Scalar& number) const;
  // Assigns this checked number to every element. If there are several replicas, a replica can
  // assign to an ON_WRITE variable with SUM only 0: a number is the same for all replicas, and no
  // replica's part of a sum.
  // Errors: also InvalidArgument (another number).
  virtual void assign_number(AssignOp op, const at::Scalar& number);
  virtual void scatter(ScatterOp op, const IndexedSlices& slices) = 0;
  // value[ids], recorded by tapes. The ids, [..] of int32 or int64, are within the rows.
  virtual Tensor read_rows(const Tensor& ids) const;
  // The same for ids that ascend strictly, [n] of int64, and for callers that do not write to the
  // result.
  virtual Tensor read_ascending_rows(const Tensor& ids) const { return read_rows(ids); }
  // The calls behind Variable::tape_source, shards (empty: it is whole) and device.
  virtual Tensor tape_source() const { return read(); }
  virtual std::vector<std::shared_ptr<VariableImpl>> shards() { return {}; }
  virtual std::string device() const;
  // Makes `leaf` (a module's parameter or buffer) the tensor with which this task's replica
  // computes, and through which it writes. Not while a step runs.
  // Errors: InvalidArgument (shape, dtype or device differ).
  virtual void bind_component(size_t replica, Tensor leaf) = 0;
  bool has_checkpoint_values() const override { return true; }
  std::vector<train::CheckpointValue> checkpoint_values() override = 0;
  void prepare_restore(train::RestoreSource& source) override = 0;

  // Whether its values are in this process.
  bool is_local() const { return const_cast<VariableImpl*>(this)->as_local() != nullptr; }
  // The same variable with what only local variables have: components, leaves, binding.
  // Errors: FailedPrecondition (its values are elsewhere; names the variable and its kind).
  LocalVariable& local();
  const LocalVariable& local() const { return const_cast<VariableImpl*>(this)->local(); }

 protected:
  // Returns `value` detached, after checking that it has the right shape and a dtype that can be
  // converted to the variable's.
  // Errors: InvalidArgument (shape, dtype).
  Tensor checked_value(const Tensor& value, const char* operation) const;
  // The replica of this strategy in which the calling code runs; nullptr outside or across
  // replicas.
  // Errors: FailedPrecondition (it is another strategy's replica or scope).
  Replica* calling_replica(const char* operation) const;
  // "assign_add of variable 'v'", by which tasks see that they combine values of one variable;
  // empty where there are no other tasks.
  std::string call_of_tasks(const char* operation) const;

 private:
  virtual LocalVariable* as_local() { return nullptr; }

  std::shared_ptr<StrategyCore> core_;
  distribute::VariableSpec spec_;
};

// "assign_add".
const char* assign_name(AssignOp op);

// Errors: InvalidArgument (ids that are not int32 or int64, or not rows of a variable of this
// shape).
void check_row_ids(const Tensor& ids, at::IntArrayRef shape, const char* operation,
                   const std::string& name);

}  // namespace cohort::internal
