// A step of replicas that move to other tasks where theirs is lost: it changes everything or
// nothing.
//
// Tasks keep the states of all replicas as of the last step that ended, which they exchange at the
// end of each, and what variables were before the step that runs. A step that a loss has cut short
// is rolled back, the replicas are divided anew, and the step is run again.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "cohort/collective/slices.h"
#include "cohort/collective/sum_tree.h"
#include "cohort/core/structure/tensor.h"

namespace cohort::internal {

// What has a state of each replica, which the replica's task alone changes in a step. Between steps
// every task has the states of all replicas.
class Hosted {
 public:
  virtual ~Hosted() = default;
  // Appends the state of a replica.
  virtual void write_state(int replica, std::string& out) const = 0;
  // Errors: DataLoss (these are not the bytes of a state).
  virtual void read_state(int replica, std::string_view bytes) = 0;
  // This task's replicas are those of `range` from here on.
  virtual void host(collective::ReplicaRange range) = 0;
};

// What has one value, which all tasks change alike.
class Undoable {
 public:
  virtual ~Undoable() = default;
  // Contiguous, on the CPU.
  virtual const Tensor& value_to_keep() const = 0;
  // Its memory was written: further copies of the value are to follow.
  virtual void put_back() = 0;
};

// Thread safety: add, remove, keep and what is kept from any thread; the rest while no step runs.
class StepTransaction {
 public:
  // An object is known by its name, and among those of one name by the order in which they were
  // made.
  void add(Hosted& object, std::string_view name);
  void remove(Hosted& object);
  // The object ends.
  void forget(Undoable& object);

  // Notes that the program has made a variable, by a text that says what it is, with this value.
  // All tasks must make the same ones.
  void note_made(std::string_view what, const Tensor& value);
  struct Made {
    uint64_t variables = 0;  // a digest of what they are
    uint64_t values = 0;     // of their first values
  };
  const Made& made() const { return made_; }
  // The last of them, for messages.
  const std::string& last_made() const { return last_made_; }

  // `own`: the replicas of this task.
  void begin(collective::ReplicaRange own);
  // Whether a step has begun that has not ended.
  bool is_open() const { return open_; }
  // The step has ended.
  void end();
  // Undoes what this task has changed since begin(). The step is still open.
  void roll_back();

  // Keeps the value of an object that is about to change, if it has not changed in the step.
  void keep(Undoable& object);
  // Memory for the value of an object of which every element is about to change, for the caller to
  // copy it there; null if there is nothing to keep.
  char* keep_all_of(Undoable& object);
  // Keeps these elements, where no others are about to change.
  void keep_parts(Undoable& object, std::span<const collective::SliceRange> parts);

  // Appends the states of one replica, for read_states of any task.
  void write_states(int replica, std::string& out) const;
  // Errors: DataLoss.
  void read_states(int replica, std::string_view states);
  void host(collective::ReplicaRange range);

 private:
  enum class Kept { kNothing, kParts, kAll };
  struct Value {
    Tensor memory;  // stays for the next steps
    Kept kept = Kept::kNothing;
    uint64_t step = 0;                          // in which it was kept
    std::vector<collective::SliceRange> parts;  // of elements
  };

  // The caller holds mutex_.
  Value& value_of(Undoable& object);
  static void keep_rest(Undoable& object, Value& value);
  static void put_back(Undoable& object, const Value& value);

  mutable std::mutex mutex_;
  std::map<uint64_t, Hosted*> hosted_;           // guarded by mutex_
  std::unordered_map<Undoable*, Value> values_;  // guarded by mutex_
  Made made_;
  std::string last_made_;
  std::atomic<bool> open_{false};
  uint64_t step_ = 0;
  collective::ReplicaRange own_;
  std::vector<std::string> states_before_;  // of own_
};

}  // namespace cohort::internal
