// What a checkpoint can hold: objects with values of their own and with children by name. The
// names from the checkpoint's root down to a value are its key.
//
//   class Counter : public train::Trackable {
//     bool has_checkpoint_values() const override { return true; }
//     std::vector<train::CheckpointValue> checkpoint_values() override {
//       return {{.attribute = train::kVariableValue, .parts = {{at::scalar_tensor(count_)}}}};
//     }
//     void prepare_restore(train::RestoreSource& source) override {
//       source.read(train::kVariableValue, {}, int64,
//                   [this](const Tensor& value) { count_ = value.item<int64_t>(); });
//     }
//     int64_t count_ = 0;
//   };
//   train::Checkpoint checkpoint({{"counter", std::make_shared<Counter>()}, {"model", model}});
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "cohort/core/export.h"
#include "cohort/core/string_tensor.h"
#include "cohort/core/structure.h"
#include "cohort/core/tensor.h"
#include "cohort/train/tensor_slice.h"

namespace cohort {
namespace internal {
class PendingValue;
struct RestorePosition;
}  // namespace internal
namespace random {
class RandomGenerator;
}
namespace data {
class DatasetIterator;
}

namespace train {

class SaveGroup;

// The attribute under which TensorFlow keeps what a variable holds.
inline constexpr const char* kVariableValue = "VARIABLE_VALUE";
// Beside it: the components of a variable that differ between replicas, [replicas, ..]. Nobody
// needs to take it back.
inline constexpr const char* kReplicaComponents = "COHORT_REPLICA_COMPONENTS";

// Where an iterator stands, as the bytes of its state. TensorFlow's iterators have an attribute
// ITERATOR, in a form of their own.
inline constexpr const char* kIteratorState = "COHORT_ITERATOR_STATE";

// A value as it goes into a checkpoint.
struct CheckpointValue {
  struct Part {
    Leaf value;  // a tensor on any device, or strings
    // Of a partitioned value: which part of the whole this is.
    std::optional<TensorSlice> slice = std::nullopt;
  };

  std::string attribute;
  std::string full_name = "";  // the variable's name, for people
  // Of the whole; only read where the parts are slices.
  std::vector<int64_t> full_shape = {};
  std::vector<Part> parts;  // one, or the slices of a partitioned value
};

// The values that a checkpoint holds for one object.
// Errors of the reads: InvalidArgument (no such attribute; shape or dtype differ from what is asked
// for), DataLoss (damaged file).
class COHORT_API RestoreSource {
 public:
  // Gets a value on the CPU, its own, once everything that is being restored has been read and
  // verified. It must not fail, so that a restore changes all objects or none: no memory is to be
  // taken that could be missing.
  using Take = std::function<void(const Tensor& value)>;

  virtual ~RestoreSource() = default;

  // Of the whole value; nullopt: there is none.
  virtual std::optional<std::vector<int64_t>> shape(std::string_view attribute) const = 0;
  // The object appeared after the restore, perhaps inside a step.
  virtual bool late() const = 0;
  virtual void read(std::string_view attribute, at::IntArrayRef shape, DType dtype, Take take) = 0;
  // Part of a value, whether it was saved whole or in other parts. The shape is slice.length.
  virtual void read_slice(std::string_view attribute, at::IntArrayRef full_shape,
                          const TensorSlice& slice, DType dtype, Take take) = 0;
  // At once, so that they can be parsed. Errors: also InvalidArgument (no strings).
  virtual StringTensor read_strings(std::string_view attribute) = 0;
  // Runs `action` when values are handed out; the same holds for it as for Take.
  virtual void on_commit(std::function<void()> action) = 0;
};

class Trackable;

struct TrackableChild {
  std::string name;
  Trackable* object = nullptr;
};

// Thread safety: a checkpoint uses its objects from the thread that saves or restores, while no
// step runs; objects that are made inside a step (weights of a layer that is built there) get
// their values from the thread that makes them.
class COHORT_API Trackable {
 public:
  Trackable();
  virtual ~Trackable();
  // A copy is another object, which no checkpoint knows.
  Trackable(const Trackable&);
  Trackable& operator=(const Trackable&);

  // Those there are now; an object may have several names. They live as long as this object.
  virtual std::vector<TrackableChild> checkpoint_children() { return {}; }
  // Whether more may come (a layer that is not built). What a restore brought for them is then part
  // of the next save too, although they are not there.
  virtual bool awaits_children() const { return false; }

  virtual bool has_checkpoint_values() const { return false; }
  // Tensors may share memory with the object: they are read before anything else runs.
  // Errors: FailedPrecondition (in a step).
  virtual std::vector<CheckpointValue> checkpoint_values() { return {}; }
  // Asks for what it takes, and changes itself only when that is handed over.
  virtual void prepare_restore(RestoreSource& source);
  // The processes whose copies of this object are saved as one, for all objects of a checkpoint the
  // same; nullptr: whatever the others say, or this process alone.
  virtual std::shared_ptr<SaveGroup> save_group() const;

 protected:
  // To be called when a child appears, by its name in checkpoint_children(): a restore that came
  // before it reaches it now. Errors: as RestoreSource's reads.
  void child_appeared(std::string_view name, Trackable& child);
  // To be asked before a child with a value (kVariableValue) is made: the value that a restore
  // brought for it, if it has this shape and dtype; else nullptr. Whoever does not use it just goes
  // on: child_appeared restores the child, or says why its value does not fit.
  // Errors: DataLoss, as RestoreSource's reads.
  std::shared_ptr<internal::PendingValue> pending_value(std::string_view name,
                                                        at::IntArrayRef shape, DType dtype) const;

 private:
  friend struct internal::RestorePosition;
  // Where in a restored checkpoint this object is; nullptr: nowhere.
  std::shared_ptr<internal::RestorePosition> position_;
};

// Objects that are children of one another by number: "0", "1", ... Keeps what it is told to own.
class COHORT_API TrackableList : public Trackable {
 public:
  void add(Trackable& object, std::shared_ptr<Trackable> owner = nullptr);
  size_t size() const { return objects_.size(); }
  // See Trackable; of the object that will be number `index`.
  std::shared_ptr<internal::PendingValue> pending_value(size_t index, at::IntArrayRef shape,
                                                        DType dtype) const {
    return Trackable::pending_value(std::to_string(index), shape, dtype);
  }
  // Takes those from number `size` on off the list.
  void truncate(size_t size) { objects_.resize(std::min(size, objects_.size())); }
  std::vector<TrackableChild> checkpoint_children() override;
  bool awaits_children() const override { return true; }

 private:
  std::vector<std::pair<Trackable*, std::shared_ptr<Trackable>>> objects_;
};

// Whatever can be put into a Checkpoint: variables, layers and models, optimizers, metrics,
// generators, iterators, and shared pointers to objects of the user's.
class COHORT_API TrackableHandle {
 public:
  // Errors: InvalidArgument (nullptr).
  template <class T>
  requires std::is_base_of_v<Trackable, T> TrackableHandle(std::shared_ptr<T> object)
      : TrackableHandle(std::shared_ptr<Trackable>(std::move(object)), Checked()) {}
  template <class Handle>
  requires requires(const Handle& handle) {
    { handle.trackable() } -> std::convertible_to<std::shared_ptr<Trackable>>;
  }
  TrackableHandle(const Handle& handle) : TrackableHandle(handle.trackable(), Checked()) {}
  TrackableHandle(const random::RandomGenerator& generator);
  // The position of the iterator, wherever the iterator is moved.
  TrackableHandle(const data::DatasetIterator& iterator);

  Trackable& operator*() const { return *object_; }
  Trackable* operator->() const { return object_.get(); }
  const std::shared_ptr<Trackable>& get() const { return object_; }

 private:
  struct Checked {};
  TrackableHandle(std::shared_ptr<Trackable> object, Checked);

  std::shared_ptr<Trackable> object_;
};

}  // namespace train
}  // namespace cohort
