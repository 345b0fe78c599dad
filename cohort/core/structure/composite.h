// Leaves of a structure that consist of several tensors, or whose rows need a mark. They are dicts
// with reserved keys, so that code that walks over structures (files, states, devices) need not
// know of them.
//
//   {'$values', '$row_splits'}   a RaggedTensor (ragged_tensor.h); '$row_splits_1' and so on come
//                                for each further ragged dimension, the outermost first
//   {'$row'}                     a row of one: batches of rows are RaggedTensors again
//   {'$coo'}                     a sparse tensor in libtorch's COO layout (sparse_tensor.h)
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "cohort/core/error.h"
#include "cohort/core/text.h"

namespace cohort::internal {

inline constexpr const char* kRaggedValues = "$values";
inline constexpr const char* kRowSplits = "$row_splits";
inline constexpr const char* kRaggedRow = "$row";
inline constexpr const char* kSparse = "$coo";

// The key of the splits of ragged dimension `level`, 0 for the outermost.
inline std::string row_splits_key(size_t level) {
  return level == 0 ? kRowSplits : str(kRowSplits, '_', level);
}

enum class Composite { kNone, kRagged, kRaggedRow, kSparse };

// Tree: Structure or StructureSpec. Only the keys are looked at.
template <class Tree>
Composite composite_kind(const Tree& tree) {
  if (!tree.is_dict()) return Composite::kNone;
  const auto& items = tree.items();
  if (items.empty() || items[0].first.empty() || items[0].first[0] != '$') return Composite::kNone;
  if (items.size() == 1 && items[0].first == kRaggedRow) return Composite::kRaggedRow;
  if (items.size() == 1 && items[0].first == kSparse) return Composite::kSparse;
  if (items.size() >= 2 && items[0].first == kRaggedValues && items[1].first == kRowSplits) {
    return Composite::kRagged;
  }
  return Composite::kNone;
}

// Whether it is a leaf, with or without a mark around it.
template <class Tree>
bool holds_leaf(const Tree& tree) {
  if (tree.is_leaf()) return true;
  const Composite kind = composite_kind(tree);
  return kind == Composite::kRaggedRow || kind == Composite::kSparse;
}

// Whether there is one in the tree.
template <class Tree>
bool has_composites(const Tree& tree) {
  if (tree.is_leaf()) return false;
  if (composite_kind(tree) != Composite::kNone) return true;
  if (tree.is_tuple()) {
    for (const auto& member : tree.members()) {
      if (has_composites(member)) return true;
    }
    return false;
  }
  for (const auto& [key, member] : tree.items()) {
    if (has_composites(member)) return true;
  }
  return false;
}

// The same tree with fn(node) for each leaf and each composite. Tree as above, Fn(const Tree&) ->
// Tree.
template <class Tree, class Fn>
Tree map_nodes(const Tree& tree, const Fn& fn) {
  if (tree.is_leaf() || composite_kind(tree) != Composite::kNone) return fn(tree);
  if (tree.is_tuple()) {
    std::vector<Tree> members;
    members.reserve(tree.members().size());
    for (const auto& member : tree.members()) members.push_back(map_nodes(member, fn));
    return Tree::make_tuple(std::move(members));
  }
  typename Tree::Dict items;
  items.reserve(tree.items().size());
  for (const auto& [key, member] : tree.items()) items.emplace_back(key, map_nodes(member, fn));
  return Tree::make_dict(std::move(items));
}

}  // namespace cohort::internal
