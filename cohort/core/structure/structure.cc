#include "cohort/core/structure/structure.h"

#include <ATen/ops/scalar_tensor.h>

#include <algorithm>
#include <unordered_set>

#include "cohort/core/structure/composite.h"
#include "cohort/core/structure/tree_form.h"
#include "cohort/core/text.h"

namespace cohort {
namespace {

using internal::describe_form;
using internal::key_list;
using internal::str;

const char* kind_name(Structure::Kind kind) {
  switch (kind) {
    case Structure::Kind::kLeaf:
      return "a leaf";
    case Structure::Kind::kTuple:
      return "a tuple";
    case Structure::Kind::kDict:
      return "a dict";
  }
  return "";
}

std::optional<std::string> difference_below(const std::string& path, const Structure& here,
                                            const Structure& there) {
  if (!internal::same_top(here, there)) {
    return str(internal::place(path), ": ", describe_form(here), " here, ", describe_form(there),
               " there");
  }
  if (here.is_leaf()) return std::nullopt;
  for (size_t i = 0; i < here.size(); ++i) {
    const std::string step =
        here.is_dict() ? internal::key_path(here.items()[i].first) : internal::index_path(i);
    if (auto difference = difference_below(path + step, here[i], there[i])) return difference;
  }
  return std::nullopt;
}

void visit_with_path(const Structure& structure, const std::string& path,
                     FunctionRef<void(const std::string&, const Leaf&)> fn) {
  switch (structure.kind()) {
    case Structure::Kind::kLeaf:
      return fn(path, structure.leaf());
    case Structure::Kind::kTuple:
      for (size_t i = 0; i < structure.size(); ++i) {
        visit_with_path(structure[i], path + internal::index_path(i), fn);
      }
      return;
    case Structure::Kind::kDict:
      for (const auto& [key, member] : structure.items()) {
        visit_with_path(member, path + internal::key_path(key), fn);
      }
      return;
  }
}

template <class Number>
Leaf scalar(Number value, DType dtype) {
  return Leaf(at::scalar_tensor(value, at::TensorOptions().dtype(dtype)));
}

}  // namespace

const Tensor& Leaf::tensor() const {
  if (const auto* tensor = std::get_if<Tensor>(&value_)) return *tensor;
  throw InvalidArgumentError(str("expected a tensor of numbers, but got strings of shape ",
                                 internal::shape_str(strings().sizes())));
}

const StringTensor& Leaf::strings() const {
  if (const auto* strings = std::get_if<StringTensor>(&value_)) return *strings;
  throw InvalidArgumentError("expected a tensor of strings, but got " +
                             internal::describe(tensor()));
}

std::vector<int64_t> Leaf::sizes() const {
  return is_strings() ? strings().sizes() : tensor().sizes().vec();
}

int64_t Leaf::dim() const { return is_strings() ? strings().dim() : tensor().dim(); }

Leaf Leaf::slice(int64_t begin, int64_t end) const {
  if (is_strings()) return strings().slice(0, begin, end);
  if (dim() == 0) {
    throw InvalidArgumentError("slice needs a tensor of rank 1 or more, but got a scalar " +
                               internal::describe(tensor()));
  }
  if (begin < 0 || begin > end || end > tensor().size(0)) {
    throw OutOfRangeError(
        str("rows [", begin, ", ", end, ") are outside of ", internal::describe(tensor())));
  }
  return tensor().narrow(0, begin, end - begin);
}

Structure::Structure() : node_(Tuple{}) {}
Structure::Structure(Tensor tensor) : node_(Leaf(std::move(tensor))) {}
Structure::Structure(StringTensor strings) : node_(Leaf(std::move(strings))) {}
Structure::Structure(Leaf leaf) : node_(std::move(leaf)) {}
Structure Structure::from_bool(bool value) { return Structure(scalar(value, boolean)); }
Structure::Structure(double value) : node_(scalar(value, float32)) {}
Structure::Structure(int64_t value) : node_(scalar(value, int64)) {}

Structure Structure::make_tuple(std::vector<Structure> members) {
  Structure result;
  result.node_ = std::move(members);
  return result;
}

Structure Structure::make_dict(Dict members) {
  std::unordered_set<std::string_view> keys;
  for (const auto& [key, member] : members) {
    if (!keys.insert(key).second) {
      throw InvalidArgumentError(str("the key ", internal::quoted(key),
                                     " stands twice in a dict with keys ", key_list(members)));
    }
  }
  Structure result;
  result.node_ = std::move(members);
  return result;
}

Structure::Kind Structure::kind() const {
  if (std::holds_alternative<Leaf>(node_)) return Kind::kLeaf;
  return std::holds_alternative<Tuple>(node_) ? Kind::kTuple : Kind::kDict;
}

const Leaf& Structure::leaf() const {
  if (const auto* leaf = std::get_if<Leaf>(&node_)) return *leaf;
  // A mark around a leaf does not hide the leaf.
  const internal::Composite kind_here = internal::composite_kind(*this);
  if (kind_here == internal::Composite::kRaggedRow || kind_here == internal::Composite::kSparse) {
    return items()[0].second.leaf();
  }
  throw InvalidArgumentError(str("expected a leaf, but got ", kind_name(kind()), ": ", *this));
}

const std::vector<Structure>& Structure::members() const {
  if (const auto* tuple = std::get_if<Tuple>(&node_)) return *tuple;
  throw InvalidArgumentError(str("expected a tuple, but got ", kind_name(kind()), ": ", *this));
}

const Structure::Dict& Structure::items() const {
  if (const auto* dict = std::get_if<Dict>(&node_)) return *dict;
  throw InvalidArgumentError(str("expected a dict, but got ", kind_name(kind()), ": ", *this));
}

size_t Structure::size() const {
  switch (kind()) {
    case Kind::kLeaf:
      return 1;
    case Kind::kTuple:
      return members().size();
    case Kind::kDict:
      return items().size();
  }
  return 0;
}

const Structure& Structure::operator[](size_t i) const {
  if (is_leaf()) {
    throw InvalidArgumentError(str("a leaf has no members, but member ", static_cast<int64_t>(i),
                                   " was asked of ", *this));
  }
  if (i >= size()) {
    throw OutOfRangeError(str("member ", static_cast<int64_t>(i), " of ", kind_name(kind()), " of ",
                              size(), " does not exist: ", *this));
  }
  return is_tuple() ? members()[i] : items()[i].second;
}

const Structure& Structure::operator[](std::string_view key) const {
  for (const auto& [name, member] : items()) {
    if (name == key) return member;
  }
  throw NotFoundError(
      str("there is no key ", internal::quoted(key), "; the keys are ", key_list(items())));
}

bool Structure::contains(std::string_view key) const {
  return is_dict() && std::any_of(items().begin(), items().end(),
                                  [&](const auto& item) { return item.first == key; });
}

std::vector<Leaf> Structure::flatten() const {
  std::vector<Leaf> leaves;
  for_each([&](const Leaf& leaf) { leaves.push_back(leaf); });
  return leaves;
}

size_t Structure::num_leaves() const {
  size_t count = 0;
  for_each([&](const Leaf&) { ++count; });
  return count;
}

Structure Structure::pack(const std::vector<Leaf>& leaves) const {
  if (leaves.size() != num_leaves()) {
    throw InvalidArgumentError(str("a structure of ", num_leaves(),
                                   " leaves cannot be packed from ", leaves.size(), ": ", *this));
  }
  size_t next = 0;
  return map([&](const Leaf&) { return leaves[next++]; });
}

Structure Structure::map(FunctionRef<Leaf(const Leaf&)> fn) const {
  Structure result;
  switch (kind()) {
    case Kind::kLeaf:
      result.node_ = fn(leaf());
      break;
    case Kind::kTuple: {
      Tuple mapped;
      mapped.reserve(size());
      for (const Structure& member : members()) mapped.push_back(member.map(fn));
      result.node_ = std::move(mapped);
      break;
    }
    case Kind::kDict: {
      Dict mapped;
      mapped.reserve(size());
      for (const auto& [key, member] : items()) mapped.emplace_back(key, member.map(fn));
      result.node_ = std::move(mapped);
      break;
    }
  }
  return result;
}

void Structure::for_each(FunctionRef<void(const Leaf&)> fn) const {
  switch (kind()) {
    case Kind::kLeaf:
      return fn(leaf());
    case Kind::kTuple:
      for (const Structure& member : members()) member.for_each(fn);
      return;
    case Kind::kDict:
      for (const auto& [key, member] : items()) member.for_each(fn);
      return;
  }
}

void Structure::for_each_with_path(
    FunctionRef<void(const std::string& path, const Leaf& leaf)> fn) const {
  visit_with_path(*this, "", fn);
}

std::optional<std::string> Structure::first_difference(const Structure& other) const {
  return difference_below("", *this, other);
}

Structure map_structures(const std::vector<Structure>& structures,
                         FunctionRef<Leaf(const std::vector<Leaf>&)> fn) {
  if (structures.empty()) throw InvalidArgumentError("map_structures needs at least one structure");
  std::vector<std::vector<Leaf>> columns;
  for (size_t i = 0; i < structures.size(); ++i) {
    if (auto difference = structures[0].first_difference(structures[i])) {
      throw InvalidArgumentError(
          str("structures 0 (here) and ", i, " (there) differ in form at ", *difference));
    }
    columns.push_back(structures[i].flatten());
  }
  size_t next = 0;
  return structures[0].map([&](const Leaf&) {
    std::vector<Leaf> row;
    row.reserve(columns.size());
    for (const auto& column : columns) row.push_back(column[next]);
    ++next;
    return fn(row);
  });
}

}  // namespace cohort
