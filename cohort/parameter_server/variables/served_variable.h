// A variable that ps tasks keep, whole or in shards.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cohort/distribute/variables/read_together.h"
#include "cohort/distribute/variables/variable_impl.h"
#include "cohort/parameter_server/variables/shard_layout.h"
#include "cohort/parameter_server/variables/task_copies.h"
#include "cohort/parameter_server/variables/variable_host.h"
#include "cohort/train/objects/remote_values.h"

namespace cohort::internal {

// A step, its replicas and what they do together in merge_call, reads the value as it was when the
// step began, with what the step has assigned and its optimizers have done since (TaskCopies); both
// go to the ps tasks after it, in the program's order. Rows that are looked up are read when the
// step first asks for them, and stay the same in it. Outside of steps every read and every write is
// a call to the ps tasks. Tapes outside of replicas take gradients by what was read.
class ServedVariable final : public VariableImpl,
                             public ReadsTogether,
                             public std::enable_shared_from_this<ServedVariable> {
 public:
  // `host`: a part of the strategy.
  ServedVariable(std::shared_ptr<StrategyCore> strategy, VariableHost& host,
                 const distribute::VariableSpec& spec, std::vector<PlacedShard> shards);
  // The coordinator's lets the ps tasks free the shards (ReleasedShards).
  ~ServedVariable() override;

  const ShardLayout& layout() const { return copies_->layout(); }
  const std::shared_ptr<TaskCopies>& copies() const { return copies_; }

  const char* kind() const override;
  Tensor read() const override;
  // Outside of steps: one call to each ps task.
  std::vector<Tensor> read_together(std::span<const distribute::Variable> variables) const override;
  void assign(AssignOp op, const Tensor& value) override;
  void scatter(ScatterOp op, const IndexedSlices& slices) override;
  Tensor read_rows(const Tensor& ids) const override;
  Tensor read_ascending_rows(const Tensor& ids) const override;
  Tensor tape_source() const override;
  std::vector<std::shared_ptr<VariableImpl>> shards() override;
  std::string device() const override;
  void bind_component(size_t replica, Tensor leaf) override;
  std::vector<train::CheckpointValue> checkpoint_values() override;
  void prepare_restore(train::RestoreSource& source) override;

  // A shard, for a checkpoint to which its ps task writes it.
  std::shared_ptr<const train::RemotePart> part_of_checkpoint(size_t index) const;
  // Errors: FailedPrecondition (in a step, or its merge_call: what that assigns comes to the ps
  // tasks after it; a late restore, of what the step has made, may be in it). `name`: of the
  // variable, or of one of its shards.
  void check_saved(const std::string& name) const;
  void check_restored(const std::string& name, const train::RestoreSource& source) const;
  // The shards, for a checkpoint of which their ps tasks make them; without keys.
  std::vector<train::RemoteRead> shards_to_make() const;

  // Assigns to a shard, as assign(). Shapes: those of the shard.
  void assign_part(size_t index, AssignOp op, const Tensor& value);
  // Outside of steps, or of what the step has restored. Shapes: those of the shard.
  void assign_shard(size_t index, AssignOp op, const Tensor& value) const;

 private:
  struct Caller {
    bool in_step = false;
    Replica* replica = nullptr;  // nullptr: outside of steps, or in merge_call
  };
  using OpsByPs = std::vector<std::vector<StoreOp>>;

  // The place where the calling code runs. Errors: as calling_replica.
  Caller caller(const char* operation) const;
  // Whether it brings a part of what all replicas of a step write together.
  static bool is_one_of_several(const Caller& caller);

  Tensor read_outside() const;
  Tensor fetch() const;
  // Shapes: ids [n], strictly ascending -> [n, ..].
  Tensor fetch_rows(const Tensor& ids) const;
  Tensor rows_outside(const Tensor& ids) const;
  Tensor no_rows(const Replica* replica) const;

  void assign_in_step(AssignOp op, const Tensor& value);
  void scatter_in_step(ScatterOp op, const IndexedSlices& slices);
  OpsByPs scatter_ops(ScatterOp op, const IndexedSlices& slices) const;
  void apply_outside(OpsByPs ops) const;
  // Nothing if the variable is not divided.
  std::optional<train::TensorSlice> slice_of(const PlacedShard& shard) const;
  std::shared_ptr<const train::RemotePart> served_part(size_t index, std::string new_name) const;

  VariableHost& host_;
  const std::shared_ptr<TaskCopies> copies_;
};

// One shard of a variable, as a variable. Reads and writes are those of its rows of the whole
// variable, so that both agree in a step.
class ShardVariable final : public VariableImpl {
 public:
  ShardVariable(std::shared_ptr<ServedVariable> whole, size_t index);

  int ps() const { return shard().place.ps; }
  const char* kind() const override { return "Variable"; }
  Tensor read() const override;
  void assign(AssignOp op, const Tensor& value) override;
  void scatter(ScatterOp op, const IndexedSlices& slices) override;
  Tensor read_rows(const Tensor& ids) const override;
  // Errors: FailedPrecondition: gradients are those of the whole variable.
  Tensor tape_source() const override;
  std::string device() const override;
  // Errors: FailedPrecondition, for the same reason.
  void bind_component(size_t replica, Tensor leaf) override;
  std::vector<train::CheckpointValue> checkpoint_values() override;
  void prepare_restore(train::RestoreSource& source) override;

 private:
  const PlacedShard& shard() const { return whole_->layout().shards[index_]; }
  [[noreturn]] void throw_not_whole(const char* what) const;

  const std::shared_ptr<ServedVariable> whole_;
  const size_t index_;
};

}  // namespace cohort::internal
