// The variables of one ps task: shards, their versions, and the updates that they take. No sockets.
//
//   VariableStore store;
//   store.create({.variable = 3, .shard = 0}, "embedding/part_0", at::zeros({4, 16384}));
//   store.apply(token, ops);                 // gradients and assignments of one step
//   auto values = store.read_together({{key, known_version}, ...});
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "cohort/core/structure/tensor.h"
#include "cohort/distribute/variables/scatter.h"
#include "cohort/distribute/variables/variable_impl.h"
#include "cohort/optim/constraint.h"
#include "cohort/optim/update_rule.h"
#include "cohort/parameter_server/store/push_tokens.h"
#include "cohort/parameter_server/store/shard_key.h"
#include "cohort/parameter_server/store/shard_ties.h"

namespace cohort::internal {

struct NamedShard {
  ShardKey key;
  std::string name;
};

// For people: that the task has no such shard, and why that may be. Without its name the variable
// is a number.
std::string no_shard_text(const ShardKey& key, std::string_view variable = {});

// value op= operand, where `op` says so.
struct AssignShard {
  ShardKey key;
  AssignOp op = AssignOp::kAssign;
  Tensor operand;
};
// Rows of the shard; indices count from its first row.
struct ScatterShard {
  ShardKey key;
  ScatterOp op = ScatterOp::kAdd;
  Tensor indices;  // [n], int64
  Tensor values;   // [n, ..]
};
// One step of an optimizer.
struct UpdateShard {
  ShardKey key;
  std::vector<ShardKey> slots = {};  // in the rule's order
  // The gradient, in the shape of the shard, or rows of it: indices [n] of int64, strictly
  // ascending.
  Tensor gradient = {};
  Tensor indices = {};  // undefined: dense
  std::shared_ptr<const optim::UpdateRule> rule = nullptr;
  double learning_rate = 0;
  int64_t iteration = 0;
  int64_t based_on = -1;  // the version of the value by which the gradient was taken; -1: unknown
  // What is done to the shard's value afterwards.
  std::optional<optim::Projection> constraint = std::nullopt;
};
using StoreOp = std::variant<AssignShard, ScatterShard, UpdateShard>;

// Thread safety: any thread. A read never sees half of an operation on a shard, and read_together
// none of assignments to small shards that follow one another in a push without it has all of them.
// What a read returned never changes: an operation that comes while the value is still in use
// (being sent) writes to a copy.
class VariableStore {
 public:
  // Keeps the value, which nobody else may hold, unless there is one already: then it changes
  // nothing.
  // Returns whether there was none.
  // Errors: InvalidArgument (there is a shard of another name, shape or dtype).
  bool create(const ShardKey& key, const std::string& name, Tensor value);
  // Whether there is the shard. Errors: InvalidArgument, as create.
  bool has(const ShardKey& key, const std::string& name, at::IntArrayRef shape, DType dtype) const;

  // The shard is of no use without `owner`, as a slot without its variable: it is released with
  // that one, unless it is held. It may come later. Errors: NotFound (`owner` is not there).
  void tie(const ShardKey& key, const ShardKey& owner);
  // The coordinator has a handle of the shard, and will say when to release it.
  void hold(const ShardKey& key);

  // Lets go of shards that are there under these names, and of what is tied to them. Who reads or
  // keeps their values has them as long as he needs them.
  void release(const std::vector<NamedShard>& shards);

  struct Value {
    static constexpr int64_t kNone = -1;
    int64_t version = 0;  // increases with each operation; kNone: there is no such shard (any more)
    Tensor tensor;        // undefined: still at the version that the caller knows, or there is none
    bool is_missing() const { return version == kNone; }
  };
  struct Wanted {
    ShardKey key;
    int64_t known_version = -1;
  };
  // In the order of `shards`; the small ones as they are at one moment.
  std::vector<Value> read_together(const std::vector<Wanted>& shards) const;
  // A copy of some rows, at whatever version each read finds them.
  // Shapes: indices [n] of int64 -> [n, ..]. Errors: NotFound (no such shard), InvalidArgument (an
  // index outside).
  Value read_rows(const ShardKey& key, const Tensor& indices) const;

  // Applies the operations in their order, once for each token: returns false, and does nothing, if
  // this token's were applied before. Where they are being applied it waits for that, as
  // PushTokens::begin, with its error. Token 0 is nobody's.
  // Errors, before anything is changed: NotFound, InvalidArgument (shapes, dtypes, indices, slots,
  // a learning rate; names the shard). ResourceExhausted (no memory for a copy of a value that is
  // in use) may come between two operations: the same token goes on there.
  bool apply(uint64_t token, const std::vector<StoreOp>& ops);
  // No token below comes again: they need not be remembered.
  void forget_tokens_below(uint64_t token);

  // The shards as they are now, for a checkpoint, until `id` is dropped: operations meanwhile write
  // to copies. Again with an id that is known: instead of what it was.
  // Errors: NotFound (no such shard), FailedPrecondition (the id was dropped before: the call comes
  // late).
  void keep(uint64_t id, const std::vector<ShardKey>& keys);
  // In the order of the keys. Errors: NotFound (no such id; the store may have been cleared
  // meanwhile).
  std::vector<Tensor> kept(uint64_t id) const;
  // If it is not there, it will not be: a call that was given up may come late.
  void drop_kept(uint64_t id);

  // A tensor of the shard's shape and dtype, uninitialized. Errors: NotFound.
  Tensor empty_like(const ShardKey& key) const;
  struct NewValue {
    ShardKey key;
    Tensor value;
    std::string new_shard = "";  // the name of one that is to be made; empty: it is there
  };
  // Values that shards are to have, until `id` is adopted or dropped; each of its shard's shape and
  // dtype. `id` is none of those of keep. Again with an id that is known: instead of what it was.
  // Errors: FailedPrecondition (the id was dropped before: the call comes late).
  void prepare(uint64_t id, std::vector<NewValue> values);
  // One more. Errors: also NotFound (no such shard), InvalidArgument (another shape or dtype, or
  // name, than that of the shard that is there).
  void prepare_more(uint64_t id, NewValue value);
  // The shards have them now; new ones are made, but for those that have come to be meanwhile.
  // Errors: NotFound (no such id, or shard); InvalidArgument, as create.
  void adopt(uint64_t id);
  // Nothing of it is there, nor will be.
  void drop_prepared(uint64_t id);

  struct Load {
    int64_t shards = 0;
    int64_t bytes = 0;
    int64_t operations = 0;   // applied so far
    int64_t repeated = 0;     // refused by their token
    int64_t values_read = 0;  // whole shards
    int64_t rows_read = 0;    // by read_rows
    int64_t bytes_read = 0;   // of both
    struct Size {
      std::string name;
      int64_t bytes = 0;
      bool operator==(const Size&) const = default;
    };
    std::vector<Size> largest = {};  // the three largest shards, the largest first
    // Updates by gradients of a known version, and how many operations on their shards, together,
    // had come between that version and the update.
    int64_t updates = 0;
    int64_t staleness = 0;
    // Figures of the task that serves the store, since it began.
    int64_t refused = 0;  // calls of an earlier coordinator, or of a worker that was given up
    int64_t bytes_received = 0;
    int64_t bytes_sent = 0;
    bool operator==(const Load&) const = default;
  };
  Load load() const;
  // Forgets everything: another program begins. Its versions begin with `first_version`, so that
  // nobody takes them for those of the program before.
  void clear(int64_t first_version = 0);

 private:
  struct Shard {
    std::string name;
    bool is_small = false;  // never changes, as the name
    bool is_held = false;   // guarded by the store's mutex_
    mutable std::mutex mutex;
    Tensor value;  // guarded by mutex, as is the version
    int64_t version = 0;
  };
  using ShardPtr = std::shared_ptr<Shard>;
  // The shards that an operation names; slots are an update's.
  struct Target {
    ShardPtr shard;
    std::array<ShardPtr, optim::kMaxSlots> slots;
  };
  class LockedUpdate;

  ShardPtr find_if_there(const ShardKey& key) const;  // nullptr: it is not
  ShardPtr find(const ShardKey& key) const;
  ShardPtr find_locked(const ShardKey& key) const;  // as find, with mutex_ held
  static void check_same(const Shard& there, const ShardKey& key, const std::string& name,
                         at::IntArrayRef shape, DType dtype);
  // Errors: NotFound; InvalidArgument (an update names more or fewer slots than its rule has).
  std::vector<Target> targets_of(const std::vector<StoreOp>& ops) const;
  Target target_of(const StoreOp& op) const;  // with mutex_ held
  static void check(const StoreOp& op, const Target& target);
  static void check_update(const UpdateShard& update, const Target& target);
  static void check_slots(const UpdateShard& update, const Target& target);
  Value value_of(const Shard& shard, int64_t known_version) const;  // with the shard's mutex held
  // Makes the assignments that come next and are to small shards, if any; adds to `next` how many
  // they were.
  static void assign_together(const std::vector<StoreOp>& ops, const std::vector<Target>& targets,
                              size_t& next);
  static void assign(const AssignShard& assignment, Shard& shard);  // with the shard's mutex held
  void run(const StoreOp& op, const Target& target);
  void run_update(const UpdateShard& update, const Target& target);
  static Tensor& writable(Shard& shard);
  void check_not_dropped(uint64_t id) const;  // with kept_mutex_ held
  void count_staleness(const UpdateShard& update, const Shard& shard);

  mutable std::shared_mutex mutex_;  // guards what follows; the shards guard themselves
  std::map<ShardKey, ShardPtr> shards_;
  ShardTies ties_;
  int64_t first_version_ = 0;

  mutable std::mutex kept_mutex_;
  // Guarded by kept_mutex_.
  std::map<uint64_t, std::vector<Tensor>> kept_;
  std::map<uint64_t, std::vector<NewValue>> prepared_;
  std::set<uint64_t> dropped_;  // of which calls may still come

  PushTokens tokens_;
  std::atomic<int64_t> operations_{0};
  std::atomic<int64_t> updates_{0};
  std::atomic<int64_t> staleness_{0};
  mutable std::atomic<int64_t> values_read_{0};
  mutable std::atomic<int64_t> rows_read_{0};
  mutable std::atomic<int64_t> bytes_read_{0};
};

}  // namespace cohort::internal
