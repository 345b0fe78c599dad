// A variable that ps tasks keep, whole or in shards.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cohort/core/program/per_task.h"
#include "cohort/distribute/variables/read_together.h"
#include "cohort/distribute/variables/variable_impl.h"
#include "cohort/parameter_server/store/store_client.h"
#include "cohort/parameter_server/variables/row_cache.h"
#include "cohort/parameter_server/variables/shard_rows.h"
#include "cohort/train/objects/remote_values.h"

namespace cohort::internal {

class ParameterServerCore;
struct StepUpdate;

// A step, its replicas and what they do together in merge_call, reads the value as it was when the step began, with what
// the step has assigned and its optimizers have done since; both go to the ps tasks after it, in the program's order. Rows
// that are looked up are read when the step first asks for them, and stay the same in it. Outside of steps every read and
// every write is a call to the ps tasks. Tapes outside of replicas take gradients by what was read.
class ServedVariable final : public VariableImpl,
                             public ReadsTogether,
                             public std::enable_shared_from_this<ServedVariable> {
 public:
  struct Shard {
    ShardPlace place;
    RowRange rows;                                 // of a scalar none
    std::optional<ShardKey> owner = std::nullopt;  // StoreClient::NewShard
  };

  // The shards cover the variable, in order.
  ServedVariable(const std::shared_ptr<ParameterServerCore>& core, distribute::VariableSpec spec,
                 std::vector<Shard> shards);
  // The coordinator's lets the ps tasks free the shards (ReleasedShards).
  ~ServedVariable() override;

  const std::vector<Shard>& placed_shards() const { return shards_; }
  // "name/part_2"; of a variable that is not divided its name.
  std::string shard_name(size_t index) const;
  // The part of a tensor of the variable's shape that belongs to the shard; shares its memory.
  Tensor part_of(const Tensor& whole, const Shard& shard) const;

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
  // Errors: FailedPrecondition (in a step, or its merge_call: what that assigns comes to the ps tasks after it; a late
  // restore, of what the step has made, may be in it). `name`: of the variable, or of one of its shards.
  void check_saved(const std::string& name) const;
  void check_restored(const std::string& name, const train::RestoreSource& source) const;
  // The shards, for a checkpoint of which their ps tasks make them; without keys.
  std::vector<train::RemoteRead> shards_to_make() const;

  // Assigns to a shard, as assign(). Shapes: those of the shard.
  void assign_part(size_t index, AssignOp op, const Tensor& value);
  // Outside of steps, or of what the step has restored. Shapes: those of the shard.
  void assign_shard(size_t index, AssignOp op, const Tensor& value) const;
  // To the current task's copies of the variable and of its slots, as the ps tasks do it after the step. Only of its rows
  // where the gradient is of rows and the rule changes no others.
  void update_here(const StepUpdate& update) const;
  // Whether the calling code runs in a step of the strategy. Errors: as calling_replica.
  bool in_step(const char* operation) const { return caller(operation).in_step; }

  // For the current task's step: of the value that it has, or of the oldest of its rows; -1: of none that
  // the ps task had.
  int64_t version_of_shard(size_t index) const;
  // For the current task: forgets what the last step has read. Returns whether the value is to be
  // pulled for the next one.
  bool begin_step() const;
  // Whether begin_step will say so before the next step.
  bool pulls_next() const;
  // The rows that the next step is likely to look up, since this one has looked up those of the one before:
  // ids, strictly ascending; undefined: there is no telling.
  Tensor rows_for_next() const;
  // The versions of the shards that the task has; and newer values for them. If some are missing
  // the task has none any more.
  void add_known(std::vector<StoreClient::Known>& shards) const;
  void take(std::span<const VariableStore::Value> values) const;
  // The same of rows, which then count as looked up before the step began. Of each ps task that has any.
  void add_rows(const Tensor& ids, std::vector<StoreClient::Rows>& rows) const;
  void take_rows(const Tensor& ids, std::span<const VariableStore::Value> parts) const;

 private:
  // A task's copy.
  struct View {
    std::mutex mutex;  // guards what follows
    Tensor value;      // undefined: the task has none
    // One per local replica. Without a value they have none either: their elements are one.
    std::vector<Tensor> leaves;
    std::vector<int64_t> versions;      // one per shard; -1: none
    RowCache rows;                      // of this step; unused where there is a value
    std::vector<int64_t> row_versions;  // one per shard, of its oldest row; -1: none
    // The rows that this step has looked up, and the one before; undefined: none, or too many to
    // tell.
    Tensor looked_up;
    Tensor looked_up_before;
    bool is_listed = false;  // in the task's TaskStep
    bool is_read = false;    // whole, in this step
    bool is_table = false;   // rows of it are looked up
  };
  using Lock = std::unique_lock<std::mutex>;
  struct Caller {
    bool in_step = false;
    Replica* replica = nullptr;  // nullptr: outside of steps, or in merge_call
  };

  // The place where the calling code runs. Errors: as calling_replica.
  Caller caller(const char* operation) const;
  // Whether it brings a part of what all replicas of a step write together.
  static bool is_one_of_several(const Caller& caller);
  std::unique_ptr<View> make_view() const;
  // Before it is written to: the value gets memory of its own where somebody beside the leaves has it, such as a result of
  // an earlier step that is being sent. `keeps_elements`: those that are not written.
  static void make_writable(View& view, bool keeps_elements);
  // Tapes that recorded an older value then refuse to use the new one instead.
  static void mark_written(View& view);
  // The current task's view, for its step; `lock` is the view's.
  View& view_in_step(Lock& lock) const;
  // The same with a value.
  View& whole_in_step(Lock& lock) const;
  // The task has none any more.
  void drop_value(View& view) const;
  Tensor& leaf_of(View& view, const Replica& replica) const;
  // The leaf by which tapes know what the caller reads.
  Tensor leaf_of(View& view, const Caller& caller) const;
  void take(View& view, std::span<const VariableStore::Value> values) const;
  // The shards' values, or rows of them, one after another.
  static Tensor together(std::span<const VariableStore::Value> parts);
  // The same of all shards. Errors: those of check_part.
  Tensor whole(std::span<const VariableStore::Value> parts) const;
  // Errors: InvalidArgument (what a ps task has for a shard is of another shape or dtype; names both).
  void check_part(size_t index, const Tensor& part) const;
  bool pulls_next(const View& view) const;
  static void note_lookup(View& view, const Tensor& ids);
  // ids, strictly ascending, and the rows that ps tasks have answered with.
  void add_rows(View& view, const Tensor& ids, std::span<const VariableStore::Value> parts) const;
  // Puts those of `ids` (strictly ascending) that the view has not into it.
  void read_rows_into(View& view, Lock& lock, const Tensor& ids) const;

  // The leaf by which tapes outside of replicas know the variable; its elements are one.
  Tensor outside_leaf() const;
  Tensor read_outside() const;
  Tensor fetch() const;
  // Shapes: ids [n], strictly ascending -> [n, ..] together.
  std::vector<VariableStore::Value> fetch_parts(const Tensor& ids) const;
  Tensor fetch_rows(const Tensor& ids) const;
  Tensor rows_outside(const Tensor& ids) const;
  Tensor no_rows(const Replica* replica) const;

  void assign_in_step(AssignOp op, const Tensor& value);
  void scatter_in_step(ScatterOp op, const IndexedSlices& slices);
  // To the current task's copy alone.
  void scatter_here(ScatterOp op, const IndexedSlices& slices) const;
  // Rows of the copy. Shapes: ids [n], strictly ascending -> [n, ..].
  Tensor rows_here(const Tensor& ids) const;
  void update_rows_here(const StepUpdate& update) const;
  std::vector<std::vector<StoreOp>> scatter_ops(ScatterOp op, const IndexedSlices& slices) const;
  void apply_outside(std::vector<std::vector<StoreOp>> ops) const;
  // Nothing if the variable is not divided.
  std::optional<train::TensorSlice> slice_of(const Shard& shard) const;
  std::shared_ptr<const train::RemotePart> served_part(size_t index, std::string new_name) const;

  const std::shared_ptr<ParameterServerCore> server_core_;
  const std::vector<Shard> shards_;
  PerTask<View> views_;
  mutable std::once_flag outside_leaf_made_;
  mutable Tensor outside_leaf_;
};

}  // namespace cohort::internal
