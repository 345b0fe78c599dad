#include "cohort/data/iteration/stacking.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/stack.h>

#include <algorithm>

#include "cohort/core/structure/composite.h"
#include "cohort/core/structure/row_memory.h"
#include "cohort/core/structure/spec.h"
#include "cohort/core/text.h"
#include "cohort/data/iteration/composite_rows.h"
#include "cohort/data/iteration/leaf_rows.h"

namespace cohort::internal {
namespace {

std::string describe(const Leaf& leaf) {
  if (leaf.is_tensor()) return internal::describe(leaf.tensor());
  return "string " + shape_str(leaf.strings().sizes());
}

[[noreturn]] void fail_to_stack(const Structure& a, int64_t index_a, const Structure& b,
                                int64_t index_b, size_t from) {
  if (const auto difference = a.first_difference(b)) {
    throw InvalidArgumentError(str("elements ", index_a, " and ", index_b,
                                   " cannot be in one batch: their form differs at ", *difference));
  }
  const std::vector<Leaf> leaves_b = b.flatten();
  size_t leaf = 0;
  std::string text;
  a.for_each_with_path([&](const std::string& path, const Leaf& leaf_a) {
    const Leaf& leaf_b = leaves_b[leaf++];
    if (!text.empty() || can_join(leaf_a, leaf_b, from)) return;
    text = str("elements ", index_a, " and ", index_b, " cannot be in one batch: at ", place(path),
               " element ", index_a, " is ", describe(leaf_a), ", but element ", index_b, " is ",
               describe(leaf_b), "; give all elements one shape (map) or batches of one element");
  });
  throw InvalidArgumentError(text);
}

// Stacks without a copy where the elements were made in the rows of a batch, which their structure
// and the list hold and nobody else.
Tensor stack_rows(const std::vector<Tensor>& rows) {
  const Tensor batch = batch_of_rows(rows, /*most_holders=*/2);
  return batch.defined() ? batch : at::stack(rows);
}

Structure join(const std::vector<Structure>& parts, size_t from,
               FunctionRef<int64_t(size_t)> index);

// The same for trees that hold composites.
Structure join_nodes(const std::vector<Structure>& parts, size_t from,
                     FunctionRef<int64_t(size_t)> index) {
  const Structure& first = parts[0];
  for (size_t i = 1; i < parts.size(); ++i) {
    if (first.first_difference(parts[i])) fail_to_stack(first, index(0), parts[i], index(i), from);
  }
  if (composite_kind(first) != Composite::kNone) {
    for (size_t i = 1; i < parts.size(); ++i) {
      if (joinable(first, parts[i], from == 0)) continue;
      throw InvalidArgumentError(str("elements ", index(0), " and ", index(i),
                                     " cannot be in one batch: ", StructureSpec::of(first), " and ",
                                     StructureSpec::of(parts[i])));
    }
    return from == 0 ? stack_composites(parts) : concat_composites(parts);
  }
  const auto members_at = [&](size_t m) {
    std::vector<Structure> members;
    for (const Structure& part : parts) members.push_back(part[m]);
    return join(members, from, index);
  };
  if (first.is_tuple()) {
    std::vector<Structure> joined;
    for (size_t m = 0; m < first.size(); ++m) joined.push_back(members_at(m));
    return Structure::make_tuple(std::move(joined));
  }
  Structure::Dict joined;
  for (size_t m = 0; m < first.size(); ++m) {
    joined.emplace_back(first.items()[m].first, members_at(m));
  }
  return Structure::make_dict(std::move(joined));
}

// Joins leaf by leaf; `index(i)` is the index of structure i.
Structure join(const std::vector<Structure>& parts, size_t from,
               FunctionRef<int64_t(size_t)> index) {
  if (has_composites(parts[0])) return join_nodes(parts, from, index);
  if (has_sparse_leaf(parts[0])) {  // results of steps, say
    std::vector<Structure> marked;
    for (const Structure& part : parts) marked.push_back(with_marked_sparse(part));
    return join_nodes(marked, from, index);
  }
  const std::vector<Leaf> first = parts[0].flatten();
  std::vector<std::vector<Tensor>> tensors(first.size());
  std::vector<std::vector<StringTensor>> strings(first.size());
  for (size_t i = 0; i < parts.size(); ++i) {
    size_t leaf = 0;
    bool fits = i == 0 || parts[i].kind() == parts[0].kind();
    parts[i].for_each([&](const Leaf& value) {
      fits = fits && leaf < first.size() && can_join(first[leaf], value, from);
      if (!fits) return;
      if (value.is_tensor()) tensors[leaf].push_back(value.tensor());
      if (value.is_strings()) strings[leaf].push_back(value.strings());
      ++leaf;
    });
    if (!fits || leaf != first.size() ||
        (!parts[0].is_leaf() && i > 0 && parts[0].first_difference(parts[i]))) {
      fail_to_stack(parts[0], index(0), parts[i], index(i), from);
    }
  }
  size_t leaf = 0;
  return parts[0].map([&](const Leaf& value) -> Leaf {
    const size_t i = leaf++;
    if (value.is_tensor()) return from == 0 ? stack_rows(tensors[i]) : at::cat(tensors[i]);
    return from == 0 ? stack(strings[i]) : concat(strings[i]);
  });
}

}  // namespace

Structure stack_elements(const std::vector<Structure>& elements, const Positions& indices) {
  return join(elements, 0, [&](size_t i) { return indices[static_cast<int64_t>(i)]; });
}

Structure concat_blocks(const std::vector<Structure>& blocks, const Positions& first_indices) {
  if (blocks.size() == 1) return blocks[0];
  return join(blocks, 1, [&](size_t i) { return first_indices[static_cast<int64_t>(i)]; });
}

int64_t num_rows(const Structure& block) {
  if (has_composites(block)) {
    const bool composite = composite_kind(block) != Composite::kNone;
    return composite ? num_rows_of_composite(block) : num_rows(block[size_t{0}]);
  }
  int64_t rows = -1;
  block.for_each([&](const Leaf& leaf) {
    if (rows < 0) rows = num_rows_of_leaf(leaf);
  });
  return std::max<int64_t>(rows, 0);
}

// No view to autograd, whose record of each row would cost as much as the row.
Structure select_row(const Structure& block, int64_t row) {
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  if (has_composites(block)) {
    return map_nodes(block, [row](const Structure& node) -> Structure {
      if (composite_kind(node) != Composite::kNone) return select_composite(node, row);
      return select_row(node, row);
    });
  }
  return block.map([row](const Leaf& leaf) { return select_leaf(leaf, row); });
}

Structure slice_rows(const Structure& block, int64_t begin, int64_t end) {
  if (has_composites(block)) {
    return map_nodes(block, [&](const Structure& node) -> Structure {
      if (composite_kind(node) != Composite::kNone) return slice_composite(node, begin, end);
      return node.leaf().slice(begin, end);
    });
  }
  return block.map([&](const Leaf& leaf) { return leaf.slice(begin, end); });
}

Structure gather_rows(const Structure& block, const Positions& rows) {
  if (has_composites(block)) {
    return map_nodes(block, [&](const Structure& node) -> Structure {
      if (composite_kind(node) != Composite::kNone) return gather_composite(node, rows);
      return gather_rows(node, rows);
    });
  }
  return block.map([&](const Leaf& leaf) { return gather_leaf(leaf, rows); });
}

}  // namespace cohort::internal
