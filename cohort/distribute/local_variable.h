// A variable whose values are in this process.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cohort/distribute/variable_impl.h"

namespace cohort::internal {

// It has one component for each local replica. Components are detached tensors; they may share one
// storage (then a write through one is seen by all), and each has a leaf: the tensor that the
// replica computes with, which tapes record, with a version counter of its own.
// Thread safety: see Variable.
class LocalVariable : public VariableImpl {
 public:
  // `components` are contiguous, one for each local replica of `core`, as `spec` says.
  LocalVariable(std::shared_ptr<StrategyCore> core, distribute::VariableSpec spec,
                std::vector<Tensor> components);

  // In a checkpoint a variable is one value, whatever its strategy: read() for saving, and what
  // `write_restored` makes of it for each component.
  std::vector<train::CheckpointValue> checkpoint_values() override;
  void prepare_restore(train::RestoreSource& source) override;

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
  // Applies op to component `replica` (and to all that share its storage).
  void write(size_t replica, AssignOp op, const Tensor& value);

 private:
  LocalVariable* as_local() final { return this; }
  Tensor make_leaf(const Tensor& component) const;

  std::vector<Tensor> components_;
  std::vector<Tensor> leaves_;
  std::vector<size_t> distinct_;
};

}  // namespace cohort::internal
