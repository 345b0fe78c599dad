#include <algorithm>
#include <ostream>

#include "cohort/core/structure/composite.h"
#include "cohort/core/structure/spec.h"
#include "cohort/core/structure/tree_form.h"
#include "cohort/core/text.h"

namespace cohort {
namespace {

using internal::describe_form;
using internal::index_path;
using internal::key_list;
using internal::key_path;
using internal::place;
using internal::same_top;
using internal::str;

std::string describe_leaf(const Leaf& leaf) {
  if (leaf.is_strings()) return "string " + internal::shape_str(leaf.strings().sizes());
  return internal::describe(leaf.tensor());
}

// A tensor in COO layout without its mark.
bool is_sparse_leaf(const Structure& structure) {
  return structure.is_leaf() && structure.leaf().is_tensor() && structure.tensor().defined() &&
         structure.tensor().layout() == at::kSparse;
}

std::optional<std::string> mismatch_below(const std::string& path, const StructureSpec& spec,
                                          const Structure& structure) {
  if (internal::composite_kind(spec) == internal::Composite::kSparse && is_sparse_leaf(structure)) {
    return mismatch_below(path, spec.items()[0].second, structure);
  }
  if (!same_top(spec, structure)) {
    return str(place(path), ": expected ", describe_form(spec), ", but got ",
               describe_form(structure));
  }
  if (spec.is_leaf()) {
    if (spec.leaf().is_compatible_with(structure.leaf())) return std::nullopt;
    return str(place(path), ": expected ", spec.leaf(), ", but got ",
               describe_leaf(structure.leaf()));
  }
  for (size_t i = 0; i < structure.size(); ++i) {
    const auto& member = spec.is_tuple() ? spec.members()[i] : spec.items()[i].second;
    const auto step = spec.is_tuple() ? index_path(i) : key_path(spec.items()[i].first);
    if (auto mismatch = mismatch_below(path + step, member, structure[i])) return mismatch;
  }
  return std::nullopt;
}

StructureSpec merge_below(const std::string& path, const StructureSpec& a, const StructureSpec& b) {
  if (!same_top(a, b)) {
    throw InvalidArgumentError(str("two specs differ in form at ", place(path), ": ",
                                   describe_form(a), " and ", describe_form(b)));
  }
  if (a.is_tuple()) {
    std::vector<StructureSpec> members;
    for (size_t i = 0; i < a.members().size(); ++i) {
      members.push_back(merge_below(path + index_path(i), a.members()[i], b.members()[i]));
    }
    return StructureSpec::make_tuple(std::move(members));
  }
  if (a.is_dict()) {
    StructureSpec::Dict items;
    for (size_t i = 0; i < a.items().size(); ++i) {
      const auto& [key, member] = a.items()[i];
      items.emplace_back(key, merge_below(path + key_path(key), member, b.items()[i].second));
    }
    return StructureSpec::make_dict(std::move(items));
  }
  try {
    return a.leaf().most_specific_compatible(b.leaf());
  } catch (const InvalidArgumentError& error) {
    throw InvalidArgumentError(str("two specs differ at ", place(path), ": ", error.what()));
  }
}

void flatten_into(const StructureSpec& spec, std::vector<TensorSpec>& leaves) {
  if (spec.is_leaf()) {
    leaves.push_back(spec.leaf());
  } else if (spec.is_tuple()) {
    for (const auto& member : spec.members()) flatten_into(member, leaves);
  } else {
    for (const auto& [key, member] : spec.items()) flatten_into(member, leaves);
  }
}

}  // namespace

StructureSpec::StructureSpec() : node_(std::vector<StructureSpec>{}) {}
StructureSpec::StructureSpec(TensorSpec leaf) : node_(std::move(leaf)) {}

StructureSpec StructureSpec::make_tuple(std::vector<StructureSpec> members) {
  StructureSpec result;
  result.node_ = std::move(members);
  return result;
}

StructureSpec StructureSpec::make_dict(Dict members) {
  for (auto it = members.begin(); it != members.end(); ++it) {
    if (std::any_of(members.begin(), it, [&](const auto& m) { return m.first == it->first; })) {
      throw InvalidArgumentError(str("the key ", internal::quoted(it->first),
                                     " stands twice in a dict of specs with keys ",
                                     key_list(members)));
    }
  }
  StructureSpec result;
  result.node_ = std::move(members);
  return result;
}

StructureSpec StructureSpec::of(const Structure& structure) {
  if (is_sparse_leaf(structure) ||
      internal::composite_kind(structure) == internal::Composite::kSparse) {
    return make_dict({{internal::kSparse, TensorSpec::of(structure.leaf())}});
  }
  if (structure.is_leaf()) return TensorSpec::of(structure.leaf());
  if (structure.is_tuple()) {
    std::vector<StructureSpec> members;
    for (const Structure& member : structure.members()) members.push_back(of(member));
    return make_tuple(std::move(members));
  }
  Dict items;
  for (const auto& [key, member] : structure.items()) items.emplace_back(key, of(member));
  // How many values there are differs from element to element, whatever this one has.
  const internal::Composite kind = internal::composite_kind(structure);
  if (kind == internal::Composite::kRagged || kind == internal::Composite::kRaggedRow) {
    items[0].second = items[0].second.leaf().with_batch_dim(kUnknownDim);
    for (size_t i = 2; i < items.size(); ++i) {  // likewise the rows inside of rows
      items[i].second = items[i].second.leaf().with_batch_dim(kUnknownDim);
    }
  }
  return make_dict(std::move(items));
}

const TensorSpec& StructureSpec::leaf() const {
  if (const auto* leaf = std::get_if<TensorSpec>(&node_)) return *leaf;
  throw InvalidArgumentError(str("expected the spec of a leaf, but got ", *this));
}

const std::vector<StructureSpec>& StructureSpec::members() const {
  if (const auto* members = std::get_if<std::vector<StructureSpec>>(&node_)) return *members;
  throw InvalidArgumentError(str("expected a tuple of specs, but got ", *this));
}

const StructureSpec::Dict& StructureSpec::items() const {
  if (const auto* items = std::get_if<Dict>(&node_)) return *items;
  throw InvalidArgumentError(str("expected a dict of specs, but got ", *this));
}

std::vector<TensorSpec> StructureSpec::flatten() const {
  std::vector<TensorSpec> leaves;
  flatten_into(*this, leaves);
  return leaves;
}

StructureSpec StructureSpec::map(FunctionRef<TensorSpec(const TensorSpec&)> fn) const {
  if (is_leaf()) return fn(leaf());
  if (is_tuple()) {
    std::vector<StructureSpec> mapped;
    for (const auto& member : members()) mapped.push_back(member.map(fn));
    return make_tuple(std::move(mapped));
  }
  Dict mapped;
  for (const auto& [key, member] : items()) mapped.emplace_back(key, member.map(fn));
  return make_dict(std::move(mapped));
}

Structure StructureSpec::make_structure(FunctionRef<Leaf(const TensorSpec&)> fn) const {
  if (is_leaf()) return fn(leaf());
  if (is_tuple()) {
    std::vector<Structure> made;
    for (const auto& member : members()) made.push_back(member.make_structure(fn));
    return Structure::make_tuple(std::move(made));
  }
  Structure::Dict made;
  for (const auto& [key, member] : items()) made.emplace_back(key, member.make_structure(fn));
  return Structure::make_dict(std::move(made));
}

std::optional<std::string> StructureSpec::first_mismatch(const Structure& structure) const {
  return mismatch_below("", *this, structure);
}

StructureSpec StructureSpec::most_specific_compatible(const StructureSpec& other) const {
  return merge_below("", *this, other);
}

bool StructureSpec::operator==(const StructureSpec& other) const { return node_ == other.node_; }

std::ostream& operator<<(std::ostream& out, const StructureSpec& spec) {
  if (spec.is_leaf()) return out << spec.leaf();
  if (spec.is_tuple()) {
    const auto& members = spec.members();
    out << '(';
    for (size_t i = 0; i < members.size(); ++i) out << (i > 0 ? ", " : "") << members[i];
    return out << (members.size() == 1 ? ",)" : ")");
  }
  const auto& items = spec.items();
  switch (internal::composite_kind(spec)) {
    case internal::Composite::kRagged:
      out << "RaggedTensorSpec(values=" << items[0].second;
      for (size_t i = 1; i < items.size(); ++i) {
        out << ", " << items[i].first.substr(1) << '=' << items[i].second;
      }
      return out << ')';
    case internal::Composite::kRaggedRow:
      return out << "RaggedTensorSpec(row=" << items[0].second << ')';
    case internal::Composite::kSparse:
      return out << "SparseTensorSpec(" << items[0].second << ')';
    case internal::Composite::kNone:
      break;
  }
  out << '{';
  for (size_t i = 0; i < items.size(); ++i) {
    out << (i > 0 ? ", " : "") << internal::quoted(items[i].first) << ": " << items[i].second;
  }
  return out << '}';
}

}  // namespace cohort
