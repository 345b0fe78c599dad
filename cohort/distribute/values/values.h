// Values that have one component per replica.
//
//   PerReplica<Tensor> losses = strategy.run(train_step, batch);   // may differ between replicas
//   for (const Tensor& loss : losses.values()) ...
//   auto [images, labels] = batch;                                 // PerReplica<Tensor> members
//   auto [images, labels, weights] = unpack<3>(batch);
#pragma once

#include <c10/util/SmallVector.h>

#include <array>
#include <concepts>
#include <functional>
#include <memory>
#include <optional>
#include <ostream>
#include <string_view>
#include <tuple>
#include <utility>

#include "cohort/core/error.h"
#include "cohort/core/export.h"
#include "cohort/core/structure/spec.h"
#include "cohort/core/structure/structure.h"
#include "cohort/core/structure/to_structure.h"
#include "cohort/core/structure/unpack.h"

namespace cohort::internal {

// A source of the components of all replicas, where replicas move from task to task.
// Thread safety: any thread.
class COHORT_API ReplicaSource {
 public:
  // first: the replica of the value's first component.
  explicit ReplicaSource(int first) : first_(first) {}
  virtual ~ReplicaSource() = default;
  int first() const { return first_; }
  // Errors: Unavailable (it was lost with its task).
  virtual Structure component(int replica) const = 0;
  // Whether component() gives those of all replicas at once: they are in this task's memory.
  virtual bool has_all() const { return false; }

 private:
  const int first_;
};
// The source that is a function of the replica's id.
COHORT_API std::shared_ptr<const ReplicaSource> source_of(int first,
                                                          std::function<Structure(int)> component);
// The source of a member of each component; null where there is no source.
COHORT_API std::shared_ptr<const ReplicaSource> member_source(
    const std::shared_ptr<const ReplicaSource>& source, size_t member);
COHORT_API std::shared_ptr<const ReplicaSource> member_source(
    const std::shared_ptr<const ReplicaSource>& source, std::string_view member);

}  // namespace cohort::internal

namespace cohort::distribute {

namespace internal_values {
// Returns the tensor in `member`.
// Errors: InvalidArgument (it is something else; the text refers to member(`which`), which returns
// it).
COHORT_API const Tensor& tensor_member(const Structure& member, size_t which);
COHORT_API const Tensor& tensor_member(const Structure& member, std::string_view which);
}  // namespace internal_values

enum class ReduceOp { SUM, MEAN };
// "sum" or "mean" in any case. Errors: InvalidArgument.
COHORT_API ReduceOp parse_reduce_op(std::string_view name);
COHORT_API std::string_view reduce_op_name(ReduceOp op);

// One component for each replica of this process, in replica order; at least one.
// Thread safety: as std::vector.
template <class T>
class PerReplica {
 public:
  using Values = c10::SmallVector<T, 4>;

  PerReplica() = default;
  explicit PerReplica(Values values,
                      std::shared_ptr<const internal::ReplicaSource> source = nullptr)
      : values_(std::move(values)), source_(std::move(source)) {}
  PerReplica(std::initializer_list<T> values) : values_(values.begin(), values.end()) {}

  size_t size() const { return values_.size(); }
  const Values& values() const { return values_; }
  // For the library: null where components cannot be had again.
  const std::shared_ptr<const internal::ReplicaSource>& source() const { return source_; }
  // The component of local replica `replica`. Errors: OutOfRange.
  const T& value(size_t replica) const {
    if (replica >= values_.size()) {
      throw OutOfRangeError(
          internal::str("replica ", replica, " of a value with ", values_.size(), " components"));
    }
    return values_[replica];
  }
  // The only component.
  // Errors: FailedPrecondition (there are several; says to reduce or gather them).
  const T& item() const {
    if (values_.size() != 1) {
      throw FailedPreconditionError(
          internal::str("a value with ", values_.size(),
                        " components was used as a plain one; call strategy.reduce, gather or "
                        "experimental_local_results first"));
    }
    return values_[0];
  }

  // The same tensors, if components are tensors of some kind.
  operator PerReplica<Tensor>() const
      requires(std::derived_from<T, Tensor> && !std::same_as<T, Tensor>) {
    return members<Tensor>([](const T& component) -> const Tensor& { return component; });
  }

  // The number in the only component: `losses.item<double>()`. Errors: also those of Tensor::item.
  template <class Number>
  requires std::same_as<T, Tensor> Number item()
  const { return item().template item<Number>(); }

  // A field of each replica's struct: losses[&Losses::sum].
  template <class Field, class Struct>
  requires std::same_as<Struct, T> PerReplica<Field>
  operator[](Field Struct::*field) const {
    return members<Field>([field](const T& value) -> const Field& { return value.*field; });
  }

  // Member `i` of each replica's tuple, or the member with a key, as tensors; member() returns
  // members of any kind.
  // Errors: InvalidArgument, OutOfRange, NotFound (as Structure::operator[]); InvalidArgument (the
  // member is not a tensor of numbers).
  PerReplica<Tensor> operator[](size_t i) const requires std::same_as<T, Structure> {
    return members<Tensor>(
        [i](const Structure& s) -> const Tensor& {
          return internal_values::tensor_member(s[i], i);
        },
        internal::member_source(source_, i));
  }
  PerReplica<Tensor> operator[](std::string_view key) const requires std::same_as<T, Structure> {
    return members<Tensor>(
        [key](const Structure& s) -> const Tensor& {
          return internal_values::tensor_member(s[key], key);
        },
        internal::member_source(source_, key));
  }
  PerReplica<Structure> member(size_t i) const requires std::same_as<T, Structure> {
    return members<Structure>([i](const Structure& s) -> const Structure& { return s[i]; },
                              internal::member_source(source_, i));
  }
  PerReplica<Structure> member(std::string_view key) const requires std::same_as<T, Structure> {
    return members<Structure>([key](const Structure& s) -> const Structure& { return s[key]; },
                              internal::member_source(source_, key));
  }

 private:
  template <class U, class Fn>
  PerReplica<U> members(Fn fn,
                        std::shared_ptr<const internal::ReplicaSource> source = nullptr) const {
    typename PerReplica<U>::Values values;
    for (const T& value : values_) values.push_back(fn(value));
    return PerReplica<U>(std::move(values), std::move(source));
  }

  Values values_;
  std::shared_ptr<const internal::ReplicaSource> source_;
};

// Equal components, one for each replica of this process.
// Thread safety: as std::vector.
template <class T>
class Mirrored {
 public:
  using Values = c10::SmallVector<T, 4>;

  explicit Mirrored(Values values) : values_(std::move(values)) {}
  Mirrored(std::initializer_list<T> values) : values_(values.begin(), values.end()) {}

  size_t size() const { return values_.size(); }
  const Values& values() const { return values_; }
  const T& value(size_t replica) const { return values_[replica]; }
  // Any component: they are equal.
  const T& item() const { return values_[0]; }

 private:
  Values values_;
};

// The spec of a PerReplica<Structure>: the spec of one component, and the number of components.
struct PerReplicaSpec {
  StructureSpec component;
  size_t num_replicas = 1;
  bool operator==(const PerReplicaSpec&) const = default;
};
COHORT_API std::ostream& operator<<(std::ostream& out, const PerReplicaSpec& spec);

template <size_t kIndex>
PerReplica<Tensor> get(const PerReplica<Structure>& value) {
  static_assert(kIndex < 2);
  for (const Structure& component : value.values()) {
    if (!component.is_tuple() || component.size() != 2) {
      throw InvalidArgumentError(
          internal::str("expected a tuple of 2 tensors, but got ", component));
    }
  }
  return value[kIndex];
}

// A member of a pair, tuple or array: `auto [losses, counts] = strategy.run(...)`.
template <size_t kIndex, class T>
requires internal::kIsTupleResult<T> PerReplica<std::tuple_element_t<kIndex, T>> get(
    const PerReplica<T>& value) {
  typename PerReplica<std::tuple_element_t<kIndex, T>>::Values members;
  for (const T& component : value.values()) members.push_back(std::get<kIndex>(component));
  return PerReplica<std::tuple_element_t<kIndex, T>>(std::move(members));
}

namespace internal_values {
// Prints "PerReplica:{\n  0: ...,\n  1: ...\n}", one line per component; "PerReplica:{}" of none.
COHORT_API void print_components(std::ostream& out, std::string_view kind, size_t count,
                                 FunctionRef<void(size_t)> print_one);
// Prints a structure with several components: the tree, with a PerReplica at each leaf.
COHORT_API void print_per_replica(std::ostream& out, const PerReplica<Structure>& value);

// Each component, converted by internal::to_structure.
template <class T>
PerReplica<Structure> to_structures(const PerReplica<T>& value) {
  typename PerReplica<Structure>::Values structures;
  for (const T& component : value.values()) {
    structures.push_back(internal::to_structure<internal::ScalarDtype::kDefault>(component));
  }
  return PerReplica<Structure>(std::move(structures));
}
}  // namespace internal_values

// Prints every component; one that is alone is printed plain.
template <class T>
std::ostream& operator<<(std::ostream& out, const PerReplica<T>& value) {
  if constexpr (std::same_as<T, Structure>) {
    internal_values::print_per_replica(out, value);
  } else if constexpr (std::same_as<T, Tensor> || internal::kIsTupleResult<T> ||
                       internal::kIsVectorResult<T> || internal::kIsStructResult<T>) {
    internal_values::print_per_replica(out, internal_values::to_structures(value));
  } else if (value.size() == 1) {
    out << value.value(0);
  } else {
    internal_values::print_components(out, "PerReplica", value.size(),
                                      [&](size_t i) { out << value.value(i); });
  }
  return out;
}

// What next() returns: the batch, or "nullopt".
template <class T>
std::ostream& operator<<(std::ostream& out, const std::optional<PerReplica<T>>& value) {
  if (!value.has_value()) return internal::print_optional(out, nullptr);
  return out << *value;
}

}  // namespace cohort::distribute

namespace cohort {

// The members of a batch of any number: `auto [x, y, z] = unpack<3>(batch);`.
// Errors: InvalidArgument (another number of members; a member that is no tensor of numbers).
template <size_t kSize>
std::array<distribute::PerReplica<Tensor>, kSize> unpack(
    const distribute::PerReplica<Structure>& batch) {
  for (const Structure& component : batch.values()) {
    if (component.is_leaf() || component.size() != kSize) {
      throw InvalidArgumentError(
          internal::str("expected a tuple of ", kSize, " tensors, but got ", component));
    }
  }
  std::array<distribute::PerReplica<Tensor>, kSize> members;
  for (size_t i = 0; i < kSize; ++i) members[i] = batch[i];
  return members;
}

}  // namespace cohort

template <>
struct std::tuple_size<cohort::distribute::PerReplica<cohort::Structure>>
    : std::integral_constant<size_t, 2> {};
template <size_t kIndex>
struct std::tuple_element<kIndex, cohort::distribute::PerReplica<cohort::Structure>> {
  using type = cohort::distribute::PerReplica<cohort::Tensor>;
};

template <class T>
requires cohort::internal::kIsTupleResult<T>
struct std::tuple_size<cohort::distribute::PerReplica<T>> : std::tuple_size<T> {
};
template <size_t kIndex, class T>
requires cohort::internal::kIsTupleResult<T>
struct std::tuple_element<kIndex, cohort::distribute::PerReplica<T>> {
  using type = cohort::distribute::PerReplica<std::tuple_element_t<kIndex, T>>;
};
