// Describes and compares the forms of Structure and StructureSpec, one node at a time, so that each
// can be compared with itself and with the other.
#pragma once

#include <algorithm>
#include <string>

#include "cohort/core/error.h"
#include "cohort/core/text.h"

namespace cohort::internal {

// "'image', 'label'"; "none".
template <class Dict>
std::string key_list(const Dict& items) {
  std::string text;
  for (const auto& [key, member] : items) {
    if (!text.empty()) text += ", ";
    text += quoted(key);
  }
  return text.empty() ? "none" : text;
}

// "a leaf", "a tuple of 2", "a dict with keys 'image', 'label'".
template <class Tree>
std::string describe_form(const Tree& tree) {
  if (tree.is_tuple()) return str("a tuple of ", tree.members().size());
  if (tree.is_dict()) return "a dict with keys " + key_list(tree.items());
  return "a leaf";
}

// Whether the top nodes agree: kind, number of members, keys and their order.
template <class TreeA, class TreeB>
bool same_top(const TreeA& a, const TreeB& b) {
  if (a.is_leaf()) return b.is_leaf();
  if (a.is_tuple()) return b.is_tuple() && a.members().size() == b.members().size();
  return b.is_dict() &&
         std::equal(a.items().begin(), a.items().end(), b.items().begin(), b.items().end(),
                    [](const auto& x, const auto& y) { return x.first == y.first; });
}

}  // namespace cohort::internal
