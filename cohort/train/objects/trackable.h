// The objects that a checkpoint can hold: they have values of their own, and children by name. The
// names from the checkpoint's root down to a value form its key.
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

#include "cohort/core/error.h"
#include "cohort/core/export.h"
#include "cohort/core/handle.h"
#include "cohort/core/structure/string_tensor.h"
#include "cohort/core/structure/structure.h"
#include "cohort/core/structure/tensor.h"
#include "cohort/train/bundle/tensor_slice.h"

namespace cohort {
namespace train {
class Trackable;
}
namespace internal {
class PendingValue;
struct RestorePosition;
// The object's place in a restored checkpoint; nullptr: it has none.
std::shared_ptr<RestorePosition>& restore_position(train::Trackable& object);
}  // namespace internal
namespace random {
class RandomGenerator;
}
namespace data {
class DatasetIterator;
}

namespace train {

class RemotePart;
class SaveGroup;

// The attribute under which TensorFlow stores the value of a variable.
inline constexpr const char* kVariableValue = "VARIABLE_VALUE";
// In addition: the components of a variable that differ between replicas, [replicas, ..]. A restore
// need not read it.
inline constexpr const char* kReplicaComponents = "COHORT_REPLICA_COMPONENTS";

// The position of an iterator, as the bytes of its state. TensorFlow's iterators have an attribute
// ITERATOR, in another format.
inline constexpr const char* kIteratorState = "COHORT_ITERATOR_STATE";

// A value in the form in which it is stored in a checkpoint.
struct CheckpointValue {
  struct Part {
    Leaf value;  // a tensor on any device, or strings
    // For a partitioned value: the part of the whole that this is.
    std::optional<TensorSlice> slice = std::nullopt;
    // Instead of `value`: another process has it (remote_values.h).
    std::shared_ptr<const RemotePart> remote = nullptr;
  };

  std::string attribute;
  std::string full_name = "";  // the variable's name, for people
  // The shape of the whole value; read only if the parts are slices.
  std::vector<int64_t> full_shape = {};
  std::vector<Part> parts;  // one, or the slices of a partitioned value
};

// The values that a checkpoint holds for one object.
// Errors of the reads: InvalidArgument (no such attribute; shape or dtype differ from what is asked
// for), DataLoss (damaged file).
class COHORT_API RestoreSource {
 public:
  // Receives a value on the CPU, which it owns, after everything to be restored has been read and
  // verified. It must not fail, so that a restore changes all objects or none: it must not allocate
  // memory that could be missing.
  using Take = std::function<void(const Tensor& value)>;

  virtual ~RestoreSource() = default;

  // The shape of the whole value; nullopt if there is none.
  virtual std::optional<std::vector<int64_t>> shape(std::string_view attribute) const = 0;
  // Whether the object was created after the restore, perhaps inside a step.
  virtual bool late() const = 0;
  virtual void read(std::string_view attribute, at::IntArrayRef shape, DType dtype, Take take) = 0;
  // Reads part of a value, whether it was saved whole or in other parts. The shape is slice.length.
  virtual void read_slice(std::string_view attribute, at::IntArrayRef full_shape,
                          const TensorSlice& slice, DType dtype, Take take) = 0;
  // The same of a value, or a slice of one, of which another process has `part`: that process reads
  // it, and this one passes nothing to `take`; where it cannot, this one reads it.
  virtual void read_remote(std::string_view attribute, at::IntArrayRef full_shape,
                           const std::optional<TensorSlice>& slice,
                           const std::shared_ptr<const RemotePart>& part, Take take);
  // Reads strings immediately, so that they can be parsed.
  // Errors: also InvalidArgument (not strings).
  virtual StringTensor read_strings(std::string_view attribute) = 0;
  // Runs `action` when values are passed to the objects; it must not fail either, as Take.
  virtual void on_commit(std::function<void()> action) = 0;
};

struct TrackableChild {
  std::string name;
  Trackable* object = nullptr;
  // A checkpoint of the parent may lack it: it then stays as it is, or as the parent's restore
  // leaves it.
  bool may_be_missing = false;
};

// Thread safety: a checkpoint uses its objects on the thread that saves or restores, while no step
// runs. Objects that are created inside a step (weights of a layer that is built there) get their
// values on the thread that creates them.
class COHORT_API Trackable {
 public:
  Trackable();
  virtual ~Trackable();
  // A copy is a different object, which no checkpoint knows.
  Trackable(const Trackable&);
  Trackable& operator=(const Trackable&);

  // The children that exist now; an object may have several names. They live as long as this
  // object.
  virtual std::vector<TrackableChild> checkpoint_children() { return {}; }
  // Whether more children may be created (by a layer that is not built). What a restore brought for
  // them is then also part of the next save, although they do not exist.
  virtual bool awaits_children() const { return false; }

  virtual bool has_checkpoint_values() const { return false; }
  // Tensors may share memory with the object: they are read before anything else runs.
  // Errors: FailedPrecondition (in a step).
  virtual std::vector<CheckpointValue> checkpoint_values() { return {}; }
  // Requests the values that the object needs; the object changes only when they are passed to it.
  virtual void prepare_restore(RestoreSource& source);
  // The processes whose copies of this object are saved as one; the same for all objects of a
  // checkpoint. nullptr: the group of the other objects, or this process alone.
  virtual std::shared_ptr<SaveGroup> save_group() const;

 protected:
  // To be called when a child is created, with its name in checkpoint_children(): values of an
  // earlier restore are passed to it now.
  // Errors: as RestoreSource's reads.
  void child_appeared(std::string_view name, Trackable& child);
  // To be called before a child with a value (kVariableValue) is created: returns the value that an
  // earlier restore brought for it, if it has this shape and dtype; else nullptr. The caller may
  // ignore it: child_appeared then restores the child, or says why its value does not fit.
  // Errors: DataLoss, as RestoreSource's reads.
  std::shared_ptr<internal::PendingValue> pending_value(std::string_view name,
                                                        at::IntArrayRef shape, DType dtype) const;

 private:
  friend std::shared_ptr<internal::RestorePosition>& internal::restore_position(Trackable& object);
  std::shared_ptr<internal::RestorePosition> position_;
};

// A list whose elements are its children, named by number: "0", "1", ... It owns those that it is
// told to own.
class COHORT_API TrackableList : public Trackable {
 public:
  void add(Trackable& object, std::shared_ptr<Trackable> owner = nullptr);
  size_t size() const { return objects_.size(); }
  // See Trackable; of the object that will be number `index`.
  std::shared_ptr<internal::PendingValue> pending_value(size_t index, at::IntArrayRef shape,
                                                        DType dtype) const {
    return Trackable::pending_value(internal::str(index), shape, dtype);
  }
  // Removes the elements from number `size` on.
  void truncate(size_t size) { objects_.resize(std::min(size, objects_.size())); }
  std::vector<TrackableChild> checkpoint_children() override;
  bool awaits_children() const override { return true; }

 private:
  std::vector<std::pair<Trackable*, std::shared_ptr<Trackable>>> objects_;
};

// Anything that can be put into a Checkpoint: variables, layers and models, optimizers, metrics,
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
  // The position of the iterator; it stays valid when the iterator is moved.
  TrackableHandle(const data::DatasetIterator& iterator);

  Trackable& operator*() const { return *object_; }
  Trackable* operator->() const { return object_.get(); }
  const std::shared_ptr<Trackable>& get() const { return object_.pointer(); }

 private:
  struct Checked {};
  TrackableHandle(std::shared_ptr<Trackable> object, Checked);

  internal::Handle<Trackable, "handle of an object to save"> object_;
};

}  // namespace train
}  // namespace cohort
