// The type of all data that passes through Cohort: a dataset's element, a step's argument, a step's
// result.
//
//   Structure element = tuple(images, labels);
//   Structure named = dict({{"image", images}, {"label", labels}});
//   named["image"].tensor();
//   auto [x, y] = element;                       // Tensors of a 2-tuple
//   Structure doubled = element.map([](const Leaf& leaf) -> Leaf { return leaf.tensor() * 2; });
#pragma once

#include <array>
#include <concepts>
#include <iosfwd>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "cohort/core/error.h"
#include "cohort/core/export.h"
#include "cohort/core/function_ref.h"
#include "cohort/core/structure/string_tensor.h"
#include "cohort/core/structure/tensor.h"

namespace cohort {

// A tensor of numbers or of strings.
class COHORT_API Leaf {
 public:
  Leaf(Tensor tensor) : value_(std::move(tensor)) {}
  Leaf(StringTensor strings) : value_(std::move(strings)) {}

  bool is_tensor() const { return std::holds_alternative<Tensor>(value_); }
  bool is_strings() const { return std::holds_alternative<StringTensor>(value_); }
  // Errors: InvalidArgument (it is the other kind).
  const Tensor& tensor() const;
  const StringTensor& strings() const;

  // The shape, whichever the kind.
  std::vector<int64_t> sizes() const;
  int64_t dim() const;
  // Rows [begin, end) of dimension 0, sharing storage. Errors: InvalidArgument (rank 0),
  // OutOfRange.
  Leaf slice(int64_t begin, int64_t end) const;

 private:
  std::variant<Tensor, StringTensor> value_;
};

// A leaf, a tuple of structures, or a dict of structures (keys unique, kept in order of insertion).
// A value type: copying copies the tree and shares the tensors' storage.
// Thread safety: as std::vector.
class COHORT_API Structure {
 public:
  using Dict = std::vector<std::pair<std::string, Structure>>;
  enum class Kind { kLeaf, kTuple, kDict };

  // The empty tuple.
  Structure();
  Structure(Tensor tensor);
  Structure(StringTensor strings);
  Structure(Leaf leaf);
  // A 0-d tensor: bool -> bool, floating point -> float32, integers -> int64.
  template <std::same_as<bool> Bool>  // not what merely converts to bool: pointers do
  Structure(Bool value) : Structure(from_bool(value)) {}
  Structure(double value);
  Structure(int64_t value);
  Structure(int value) : Structure(static_cast<int64_t>(value)) {}
  Structure(float value) : Structure(static_cast<double>(value)) {}
  // Not from pointers (string literals, for example), which would silently become a bool.
  template <class T>
  Structure(T* pointer) = delete;

  static Structure make_tuple(std::vector<Structure> members);
  // Errors: InvalidArgument (a key twice).
  static Structure make_dict(Dict members);

  Kind kind() const;
  bool is_leaf() const { return kind() == Kind::kLeaf; }
  bool is_tuple() const { return kind() == Kind::kTuple; }
  bool is_dict() const { return kind() == Kind::kDict; }

  // The leaf itself. Errors: InvalidArgument (not a leaf; a leaf of the other kind).
  const Leaf& leaf() const;
  const Tensor& tensor() const { return leaf().tensor(); }
  const StringTensor& strings() const { return leaf().strings(); }
  operator const Tensor&() const { return tensor(); }
  operator const StringTensor&() const { return strings(); }

  // Members of a tuple or dict; 1 for a leaf.
  size_t size() const;
  // Member `i` of a tuple, or the i-th inserted of a dict. Errors: InvalidArgument (a leaf),
  // OutOfRange.
  const Structure& operator[](size_t i) const;
  const Structure& operator[](int i) const { return (*this)[static_cast<size_t>(i)]; }
  // Errors: InvalidArgument (not a dict), NotFound (names the keys there are).
  const Structure& operator[](std::string_view key) const;
  const Structure& operator[](const char* key) const { return (*this)[std::string_view(key)]; }
  bool contains(std::string_view key) const;
  // Errors: InvalidArgument (not a tuple / not a dict).
  const std::vector<Structure>& members() const;
  const Dict& items() const;

  // All leaves, depth first, dicts in order of insertion.
  std::vector<Leaf> flatten() const;
  size_t num_leaves() const;
  // The same tree with `leaves` in flatten()'s order. Errors: InvalidArgument (their number).
  Structure pack(const std::vector<Leaf>& leaves) const;
  // The same tree with fn(leaf) for each leaf.
  Structure map(FunctionRef<Leaf(const Leaf&)> fn) const;
  void for_each(FunctionRef<void(const Leaf&)> fn) const;
  // Like for_each, with the leaf's path: "", "[1]", "['image'][0]".
  void for_each_with_path(FunctionRef<void(const std::string& path, const Leaf& leaf)> fn) const;

  // The first difference in form between two trees (values are ignored): the path, and what is
  // there in each; nullopt if the forms are equal. Dicts with the same keys in different order have
  // different forms, since the order decides flatten().
  std::optional<std::string> first_difference(const Structure& other) const;

 private:
  static Structure from_bool(bool value);

  using Tuple = std::vector<Structure>;
  std::variant<Leaf, Tuple, Dict> node_;
};

// Combines structures of the same form leaf by leaf.
// Errors: InvalidArgument (no structures; their forms differ, with the path of the first
// difference).
COHORT_API Structure map_structures(const std::vector<Structure>& structures,
                                    FunctionRef<Leaf(const std::vector<Leaf>&)> fn);

// Short forms of Structure::make_tuple and make_dict.
template <class... Members>
Structure tuple(Members&&... members) {
  std::vector<Structure> list;
  list.reserve(sizeof...(Members));
  (list.emplace_back(std::forward<Members>(members)), ...);
  return Structure::make_tuple(std::move(list));
}
inline Structure dict(Structure::Dict members) { return Structure::make_dict(std::move(members)); }

// A tensor prints as its values up to 16 elements, else as dtype and shape: (tensor, {'a':
// tensor}).
COHORT_API std::ostream& operator<<(std::ostream& out, const Structure& structure);
namespace internal {
COHORT_API std::ostream& print_optional(std::ostream& out, const Structure* element);
}
// What next() returns: the element, or "nullopt".
template <std::same_as<Structure> Element>
std::ostream& operator<<(std::ostream& out, const std::optional<Element>& element) {
  return internal::print_optional(out, element.has_value() ? &*element : nullptr);
}

// A leaf computes as the tensor that it converts to: `element["x"] / 255`, and the `x + 1` of
// `[](auto x) { return x + 1; }`.
using at::operator+;
using at::operator-;
using at::operator*;
using at::operator/;
using at::operator%;
using at::operator<;
using at::operator<=;
using at::operator>;
using at::operator>=;
using at::operator==;
using at::operator!=;

// `auto [x, y] = element;` for a tuple of two tensors; `auto [x, y, z] = unpack<3>(element);` for
// another number.
// Errors: InvalidArgument (another number of members; a member that is no tensor).
template <size_t kSize>
std::array<Tensor, kSize> unpack(const Structure& structure) {
  if (!structure.is_tuple() || structure.size() != kSize) {
    throw InvalidArgumentError(
        internal::str("expected a tuple of ", kSize, " tensors, but got ", structure));
  }
  std::array<Tensor, kSize> tensors;
  for (size_t i = 0; i < kSize; ++i) tensors[i] = structure[i].tensor();
  return tensors;
}
template <size_t kIndex>
Tensor get(const Structure& structure) {
  static_assert(kIndex < 2);
  return unpack<2>(structure)[kIndex];
}

}  // namespace cohort

template <>
struct std::tuple_size<cohort::Structure> : std::integral_constant<size_t, 2> {};
template <size_t kIndex>
struct std::tuple_element<kIndex, cohort::Structure> {
  using type = cohort::Tensor;
};
