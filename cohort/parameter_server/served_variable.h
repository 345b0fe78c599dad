// A variable that ps tasks keep, whole or in shards.
#pragma once

#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "cohort/core/per_task.h"
#include "cohort/distribute/variable_impl.h"
#include "cohort/parameter_server/shard_rows.h"
#include "cohort/parameter_server/store/store_client.h"

namespace cohort::internal {

class ParameterServerCore;

// In a step, a replica reads the value as it was when the step began, with what the step itself has
// assigned since; what it assigns goes to the ps tasks after the step. Outside of steps every read and
// every write is a call to the ps tasks.
class ServedVariable final : public VariableImpl,
                             public std::enable_shared_from_this<ServedVariable> {
 public:
  struct Shard {
    ShardPlace place;
    RowRange rows;  // of a scalar none
  };

  // The shards cover the variable, in order.
  ServedVariable(const std::shared_ptr<ParameterServerCore>& core, distribute::VariableSpec spec,
                 std::vector<Shard> shards);

  const std::vector<Shard>& shards() const { return shards_; }
  // The part of a tensor of the variable's shape that belongs to the shard; shares its memory.
  Tensor part_of(const Tensor& whole, const Shard& shard) const;

  const char* kind() const override;
  Tensor read() const override;
  void assign(AssignOp op, const Tensor& value) override;
  void scatter(ScatterOp op, const IndexedSlices& slices) override;
  std::vector<train::CheckpointValue> checkpoint_values() override;
  void prepare_restore(train::RestoreSource& source) override;

  // For the current task: which versions of the shards it has; and newer values for them.
  void add_known(std::vector<StoreClient::Known>& shards) const;
  void take(std::span<const VariableStore::Value> values) const;

  // Rows (indices [n] of int64 on the CPU, values [n, ..]) by the shard that has them.
  struct ShardRows {
    const Shard* shard;
    Tensor indices;  // from the shard's first row
    Tensor values;
  };
  std::vector<ShardRows> by_shard(const Tensor& indices, const Tensor& values) const;

 private:
  // A task's copy.
  struct View {
    std::mutex mutex;  // guards what follows
    Tensor value;
    std::vector<Tensor> leaves;     // one per local replica
    std::vector<int64_t> versions;  // one per shard; -1: none
    bool is_used = false;
  };

  std::unique_ptr<View> make_view() const;
  // Of the current task, up to date as far as a step needs it; `lock` is the view's.
  View& view_in_step(std::unique_lock<std::mutex>& lock) const;
  Tensor fetch() const;
  void assign_in_step(AssignOp op, const Tensor& value);
  void apply_outside(std::vector<std::vector<StoreOp>> ops) const;
  train::TensorSlice slice_of(const Shard& shard) const;

  const std::shared_ptr<ParameterServerCore> server_core_;
  const std::vector<Shard> shards_;
  PerTask<View> views_;
};

}  // namespace cohort::internal
