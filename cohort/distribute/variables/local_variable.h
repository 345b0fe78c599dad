// A variable whose values are in this process.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cohort/distribute/core/step_transaction.h"
#include "cohort/distribute/variables/variable_impl.h"

namespace cohort::internal {

class Task;

// It has one component per local replica. Components are detached tensors. They may share one
// storage; then a write through one is visible in all. Each component has a leaf: the tensor with
// which the replica computes, which tapes record, and which has its own version counter.
// It belongs to the task that made it (core/task.h), whose replicas the components are for. Those
// of the default strategy belong to none: they are everyone's.
// Thread safety: see Variable.
class LocalVariable : public VariableImpl, private Hosted, private Undoable {
 public:
  // `components` are contiguous, one per local replica of `core`, and fit `spec`.
  LocalVariable(std::shared_ptr<StrategyCore> core, distribute::VariableSpec spec,
                std::vector<Tensor> components);
  ~LocalVariable() override;

  // To be called once it is made: it goes with its replicas where they move from task to task.
  void follow_replicas();

  // In a checkpoint a variable has one value, whatever its strategy. read() gives the value to
  // save; `write_restored` turns a saved value into that of each component.
  std::vector<train::CheckpointValue> checkpoint_values() override;
  void prepare_restore(train::RestoreSource& source) override;

  size_t num_components() const { return components_.size(); }
  // How many of the components a program sees: all, or one if all replicas use one copy.
  virtual size_t num_copies() const { return components_.size(); }
  // The components that this task keeps: its replicas', or those of all replicas where they move
  // from task to task.
  virtual const std::vector<Tensor>& kept_components() const { return components_; }
  // The component of a replica by its id; null if this task does not keep it.
  const Tensor* component_of(int replica_id) const;
  // The component of local replica `replica`; tapes never record it.
  const Tensor& component(size_t replica) const { return components_[replica]; }
  const Tensor& leaf(size_t replica) const { return leaves_[replica]; }
  // "w:0", "w/replica_1:0".
  std::string component_name(size_t replica) const;
  // The indices of the components that have a storage of their own; the first is 0.
  const std::vector<size_t>& distinct_components() const { return distinct_; }

  // Makes `leaf` (a module's parameter or buffer) the leaf of `replica`'s component: from here on
  // it shares the component's storage, on whatever device it was. Not while a step runs.
  // Errors: InvalidArgument (shape or dtype differ).
  void bind_component(size_t replica, Tensor leaf) override;

  // Errors: FailedPrecondition (the variable belongs to another task than the caller's).
  void check_task() const;

  // To be called by code that has written to the components by other means than `assign`: tapes
  // that recorded an older value then refuse to use the new one instead.
  void mark_written(size_t replica) const;
  // To be called before such a write of a variable whose components are equal: a step that does not
  // end puts them back.
  void about_to_write() const;
  // The same for a write of every element of component 0: memory to which the caller copies them
  // before; null if there is nothing to keep.
  char* keep_all() const;
  // The same for these elements.
  void keep_parts(std::span<const collective::SliceRange> parts) const;

 protected:
  // Puts other components in the place of those of this task.
  void set_components(std::vector<Tensor> components);
  void host(collective::ReplicaRange range) override;
  void write_state(int, std::string&) const override {}  // equal components are no replica's own
  void read_state(int, std::string_view) override {}
  // Whether each replica has a value of its own.
  virtual bool is_of_each_replica() const { return false; }
  // The calling replica. Errors: also those of check_task, in a replica.
  Replica* owners_replica(const char* operation) const;
  // Writes a restored value into all components that it keeps; allocates no memory.
  virtual void write_restored(const Tensor& value);
  // Applies op to component `replica`, and so to all that share its storage.
  void write(size_t replica, AssignOp op, const Tensor& value);
  static void apply(const Tensor& target, AssignOp op, const Tensor& value);
  void mark_sharers(const Tensor& written) const;
  // Adds to component `replica`: on the host without an operation, which takes microseconds, on a
  // device without a copy of the number. False: nothing was done, for the component is no float or
  // double, or more than one.
  bool add_in_place(size_t replica, const at::Scalar& delta);
  // The same as write for rows; `slices` as checked_slices returns them.
  void write_rows(size_t replica, ScatterOp op, const IndexedSlices& slices);
  // Lets the replica compute with another tensor than its component, of the same shape and dtype.
  // The subclass keeps its values up to date.
  void replace_leaf(size_t replica, const Tensor& leaf) { leaves_[replica] = make_leaf(leaf); }

 private:
  LocalVariable* as_local() final { return this; }
  const Tensor& value_to_keep() const override { return components_[0]; }
  void put_back() override;
  Tensor make_leaf(const Tensor& component) const;

  const Task* const owner_;  // nullptr: none
  std::vector<Tensor> components_;
  std::vector<Tensor> leaves_;
  std::vector<size_t> distinct_;
  bool is_bound_ = false;  // to tensors of a module
};

}  // namespace cohort::internal
