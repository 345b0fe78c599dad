// The copies of a variable on ps tasks that the tasks of this process have in their steps.
#pragma once

#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "cohort/core/program/per_task.h"
#include "cohort/distribute/variables/variable_impl.h"
#include "cohort/optim/constraint.h"
#include "cohort/optim/update_rule.h"
#include "cohort/parameter_server/store/row_ids.h"
#include "cohort/parameter_server/variables/read_cache.h"
#include "cohort/parameter_server/variables/row_cache.h"
#include "cohort/parameter_server/variables/shard_layout.h"
#include "cohort/parameter_server/variables/task_step.h"
#include "cohort/parameter_server/variables/variable_host.h"

namespace cohort::internal {

// The current task's copy is whole, or some rows where the step has looked up no more. It is as it
// was when the step began, with what the step has done to it since. Replicas know it by leaves, of
// which tapes take gradients.
// Thread safety: any thread.
class TaskCopies final : public StepVariable, public std::enable_shared_from_this<TaskCopies> {
 public:
  // `host` outlives the calls.
  TaskCopies(VariableHost& host, ShardLayout layout, bool trainable);

  const ShardLayout& layout() const { return layout_; }

  size_t num_shards() const override { return layout_.shards.size(); }
  bool begin_step() override;
  bool pulls_next() override;
  Tensor rows_for_next() override;
  void add_known(std::vector<StoreClient::Known>& shards) override;
  void take(std::span<const VariableStore::Value> values) override;
  void add_rows(const Tensor& ids, std::vector<StoreClient::Rows>& rows) override;
  void take_rows(const Tensor& ids, std::span<const VariableStore::Value> parts) override;

  // The version of the value that the task has, or of the oldest of its rows; -1: of none that the
  // ps task had.
  int64_t version_of_shard(size_t index);
  // Makes `leaf` the replica's. Errors: as VariableImpl::bind_component.
  void bind(size_t replica, Tensor leaf);
  // The leaf by which tapes outside of replicas know the variable; its elements are one.
  Tensor outside_leaf();
  Tensor leaf(const Replica& replica);

  // In a step. `replica`: the one that reads; nullptr in merge_call.
  //
  // `cached`: what the thread's scope of cached reads has of the variable; nullptr: there is no
  // scope.
  Tensor read(const Replica* replica, CachedReads::Entry* cached);
  // Shapes: ids [n], whose distinct rows are `distinct` -> [n, ..].
  Tensor read_rows(const Replica* replica, const Tensor& ids, const DistinctRows& distinct);
  // Shapes: ids [n], strictly ascending -> [n, ..].
  Tensor read_ascending_rows(const Replica* replica, const Tensor& ids);
  // A lookup of nothing: what it returns has no rows, and neither has its gradient, but there is
  // one.
  Tensor read_no_rows(const Replica& replica);
  void assign(AssignOp op, const Tensor& value);
  void scatter(ScatterOp op, const IndexedSlices& slices);

  // What an optimizer does to a variable and its slots.
  struct Update {
    std::vector<std::shared_ptr<TaskCopies>>
        written;      // the variable, then its slots, in the rule's order
    Tensor gradient;  // dense, or rows, coalesced
    std::shared_ptr<const optim::UpdateRule> rule;
    double learning_rate = 0;
    int64_t iteration = 0;
    optim::Constraint constraint = {};  // the variable's
  };
  // Does to the copies what the ps tasks do after the step; only to the gradient's rows where it is
  // of rows and the rule changes no others, nor a constraint.
  static void apply(const Update& update);

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

  std::unique_ptr<View> make_view() const;
  // Before the value is written to: gives it memory of its own where somebody beside the leaves has
  // it, such as a result of an earlier step that is being sent. `keeps_elements`: those that are
  // not written.
  static void make_writable(View& view, bool keeps_elements);
  // The value is no version of the ps tasks' any more. Tapes that recorded an older value then
  // refuse to use the new one instead.
  void mark_written(View& view) const;
  static void bump_leaves(View& view);
  // The current task's view, for its step; `lock` is the view's.
  View& view_in_step(Lock& lock);
  // The same with a value.
  View& whole_in_step(Lock& lock);
  // The task has none any more.
  void drop_value(View& view) const;
  Tensor& leaf_of(View& view, const Replica& replica) const;
  // The leaf by which tapes know what the caller reads.
  Tensor leaf_of(View& view, const Replica* replica);
  // The elements of a leaf without values are one and the same, which nobody reads.
  Tensor no_elements() const;
  void take(View& view, std::span<const VariableStore::Value> values) const;
  static bool pulls_next(const View& view, size_t shards);
  static void note_lookup(View& view, const Tensor& ids);
  // ids, strictly ascending, and the rows that ps tasks have answered with.
  void add_rows(View& view, const Tensor& ids, std::span<const VariableStore::Value> parts) const;
  // Puts those of `ids` (strictly ascending) that the view has not into it.
  void read_rows_into(View& view, Lock& lock, const Tensor& ids);
  static void apply_rows(const Update& update);
  // Rows of the copy. Shapes: ids [n], strictly ascending -> [n, ..].
  Tensor rows_of(const Tensor& ids);

  VariableHost& host_;
  const ShardLayout layout_;
  const bool trainable_;
  PerTask<View> views_;
  std::once_flag outside_leaf_made_;
  Tensor outside_leaf_;
};

}  // namespace cohort::internal
