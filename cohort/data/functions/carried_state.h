// What reduce and scan carry from element to element.
#pragma once

#include <cstdint>
#include <optional>

#include "cohort/core/error.h"
#include "cohort/core/structure/spec.h"
#include "cohort/core/structure/structure.h"

namespace cohort::internal {

// A state to begin with: of memory of its own, since the function may write to it.
inline Structure own_state(const Structure& initial) {
  return initial.map([](const Leaf& leaf) -> Leaf {
    return leaf.is_strings() ? leaf : Leaf(leaf.tensor().clone());
  });
}

// Whether a write to one changes the other, or might: rows of one tensor count.
inline bool share_memory(const Tensor& a, const Tensor& b) {
  if (!a.defined() || !b.defined()) return false;
  if (a.is_sparse()) return share_memory(a._indices(), b) || share_memory(a._values(), b);
  if (b.is_sparse()) return share_memory(b, a);
  return a.has_storage() && b.has_storage() ? a.is_alias_of(b) : a.is_same(b);
}

// The structure, with copies of those tensors that share memory with one of `other`.
inline Structure apart_from(const Structure& other, Structure structure) {
  const auto shares = [&](const Leaf& leaf) {
    bool found = false;
    if (leaf.is_strings()) return found;
    other.for_each([&](const Leaf& held) {
      found = found || (held.is_tensor() && share_memory(leaf.tensor(), held.tensor()));
    });
    return found;
  };
  bool any = false;
  structure.for_each([&](const Leaf& leaf) { any = any || shares(leaf); });
  if (!any) return structure;
  return structure.map(
      [&](const Leaf& leaf) { return shares(leaf) ? Leaf(leaf.tensor().clone()) : leaf; });
}

// A number such as 0.0 is float32, what a function of doubles returns float64: no harm is done.
inline bool are_floating(const TensorSpec& a, const TensorSpec& b) {
  return !a.is_string() && !b.is_string() && c10::isFloatingType(a.dtype()) &&
         c10::isFloatingType(b.dtype());
}

// The spec of both states, in which shapes that differ are unknown. Errors: InvalidArgument (the
// state that the function returned for element `index` is of another form or dtype than the one
// before; names both).
inline StructureSpec spec_of_states(const char* stage, int64_t index, const StructureSpec& before,
                                    const StructureSpec& after) {
  try {
    if (before.is_leaf() && after.is_leaf() && are_floating(before.leaf(), after.leaf())) {
      const TensorSpec widened(before.leaf().shape(), after.leaf().dtype());
      return StructureSpec(widened).most_specific_compatible(after);
    }
    return before.most_specific_compatible(after);
  } catch (const InvalidArgumentError& error) {
    throw InvalidArgumentError(str(stage, ": the state after element ", index,
                                   " is of another form than before: it was ", before,
                                   ", the function returned ", after, " (", error.what(),
                                   "); form and dtypes must stay, only shapes may change"));
  }
}

// The errors alone, for every element.
inline void check_next_state(const char* stage, int64_t index, const Structure& before,
                             const Structure& after) {
  const bool same_numbers = before.is_leaf() && after.is_leaf() && before.leaf().is_tensor() &&
                            after.leaf().is_tensor() &&
                            before.tensor().scalar_type() == after.tensor().scalar_type();
  if (!same_numbers) {
    spec_of_states(stage, index, StructureSpec::of(before), StructureSpec::of(after));
  }
}

}  // namespace cohort::internal
