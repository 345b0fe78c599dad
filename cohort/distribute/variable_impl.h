// What stands behind a Variable.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cohort/core/tensor.h"
#include "cohort/distribute/variable.h"
#include "cohort/train/trackable.h"

namespace cohort::distribute {
class ReplicaContext;
}

namespace cohort::internal {

class StrategyCore;

enum class AssignOp { kAssign, kAdd, kSub };

// A variable with one component for each local replica. Components are detached tensors; they may
// share one storage (then a write through one is seen by all), and each has a leaf: the tensor that
// the replica computes with, which tapes record, with a version counter of its own.
// Thread safety: see Variable.
class VariableImpl : public train::Trackable {
 public:
  // `components` are contiguous, one for each local replica of `core`.
  VariableImpl(std::shared_ptr<StrategyCore> core, distribute::VariableOptions options,
               std::vector<Tensor> components);
  VariableImpl(const VariableImpl&) = delete;
  VariableImpl& operator=(const VariableImpl&) = delete;
  std::shared_ptr<train::SaveGroup> save_group() const override;  // the strategy's

  const distribute::VariableOptions& options() const { return options_; }
  bool trainable() const { return *options_.trainable; }
  const std::shared_ptr<StrategyCore>& core() const { return core_; }
  at::IntArrayRef shape() const { return components_[0].sizes(); }
  DType dtype() const { return components_[0].scalar_type(); }

  // By the rules of Variable::value, assign, assign_add and assign_sub.
  virtual Tensor read() const = 0;
  virtual void assign(AssignOp op, const Tensor& value) = 0;
  // In a checkpoint a variable is one value, whatever its strategy: read() for saving, and what
  // `write_restored` makes of it for each component.
  bool has_checkpoint_values() const override { return true; }
  std::vector<train::CheckpointValue> checkpoint_values() override;
  void prepare_restore(train::RestoreSource& source) override;

  // "MirroredVariable"; for printing.
  virtual const char* kind() const = 0;

  size_t num_components() const { return components_.size(); }
  // Storage of local replica `replica`, never recorded.
  const Tensor& component(size_t replica) const { return components_[replica]; }
  const Tensor& leaf(size_t replica) const { return leaves_[replica]; }
  // "w:0", "w/replica_1:0".
  std::string component_name(size_t replica) const;
  // The components with a storage of their own, by index; the first is 0.
  const std::vector<size_t>& distinct_components() const { return distinct_; }

  // Makes `leaf` (a module's parameter or buffer) the leaf of `replica`'s component: it shares the
  // component's storage from here on. Not while a step runs.
  // Errors: InvalidArgument (shape, dtype or device differ).
  void bind_component(size_t replica, Tensor leaf);

  // Whoever wrote to the components by other means than `assign` says so: tapes that hold an older
  // value then refuse to use the new one for it.
  void mark_written(size_t replica) const;

 protected:
  // Writes a restored value into local component `replica`; takes no memory for that.
  virtual void write_restored(size_t replica, const Tensor& value);
  // value of the right dtype on the right device. Errors: InvalidArgument (shape, dtype).
  Tensor checked_value(const Tensor& value, const char* operation) const;
  // Applies op to component `replica` (and to all that share its storage).
  void write(size_t replica, AssignOp op, const Tensor& value);
  // This strategy's replica that the calling code runs in; nullptr outside or across replicas.
  // Errors: FailedPrecondition (it is another strategy's replica or scope).
  distribute::ReplicaContext* calling_replica(const char* operation) const;

 private:
  Tensor make_leaf(const Tensor& component) const;

  std::shared_ptr<StrategyCore> core_;
  distribute::VariableOptions options_;
  std::vector<Tensor> components_;
  std::vector<Tensor> leaves_;
  std::vector<size_t> distinct_;
};

// Fills in what is left open. Errors: InvalidArgument (trainable, but not of a floating dtype).
distribute::VariableOptions resolve_options(distribute::VariableOptions options, DType dtype);

// "assign_add".
const char* assign_name(AssignOp op);

}  // namespace cohort::internal
