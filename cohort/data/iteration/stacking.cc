#include "cohort/data/iteration/stacking.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/stack.h>

#include <algorithm>
#include <cstring>

#include "cohort/core/structure/composite.h"
#include "cohort/core/structure/contiguous_elements.h"
#include "cohort/core/text.h"
#include "cohort/data/iteration/composite_rows.h"

namespace cohort::internal {
namespace {

std::string describe(const Leaf& leaf) {
  if (leaf.is_tensor()) return internal::describe(leaf.tensor());
  return "string " + shape_str(leaf.strings().sizes());
}

// Whether two leaves can be rows (`from` 0) or blocks (`from` 1) of one tensor.
bool stackable(const Leaf& a, const Leaf& b, size_t from) {
  if (a.is_tensor() != b.is_tensor()) return false;
  const auto same = [&](const auto& x, const auto& y) {
    return x.size() == y.size() && x.size() >= from &&
           std::equal(x.begin() + from, x.end(), y.begin() + from);
  };
  if (a.is_strings()) return same(a.strings().sizes(), b.strings().sizes());
  return a.tensor().scalar_type() == b.tensor().scalar_type() &&
         same(a.tensor().sizes(), b.tensor().sizes());
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
    if (!text.empty() || stackable(leaf_a, leaf_b, from)) return;
    text = str("elements ", index_a, " and ", index_b, " cannot be in one batch: at ", place(path),
               " element ", index_a, " is ", describe(leaf_a), ", but element ", index_b, " is ",
               describe(leaf_b), "; give all elements one shape (map) or batches of one element");
  });
  throw InvalidArgumentError(text);
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
      fits = fits && leaf < first.size() && stackable(first[leaf], value, from);
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
    if (value.is_tensor()) return from == 0 ? at::stack(tensors[i]) : at::cat(tensors[i]);
    return from == 0 ? stack(strings[i]) : concat(strings[i]);
  });
}

// index_select, without its cost per row where rows are plain memory.
Tensor gather(const Tensor& tensor, const Positions& rows) {
  if (rows.is_run()) {
    if (rows.size() == 0) return tensor.slice(0, 0, 0);
    const int64_t first = rows[0], last = rows[rows.size() - 1];
    return tensor.slice(0, first, last + 1, rows.stride());
  }
  if (!has_contiguous_elements(tensor) || !tensor.device().is_cpu()) {
    Tensor index = at::empty({rows.size()}, int64);
    for (int64_t i = 0; i < rows.size(); ++i) index.data_ptr<int64_t>()[i] = rows[i];
    return tensor.index_select(0, index.to(tensor.device()));
  }
  std::vector<int64_t> shape = tensor.sizes().vec();
  shape[0] = rows.size();
  Tensor result = at::empty(shape, tensor.options());
  const size_t row_bytes =
      tensor.size(0) == 0 ? 0 : tensor.nbytes() / static_cast<size_t>(tensor.size(0));
  const char* from = static_cast<const char*>(tensor.data_ptr());
  char* to = static_cast<char*>(result.data_ptr());
  for (int64_t i = 0; i < rows.size(); ++i, to += row_bytes) {
    std::memcpy(to, from + static_cast<size_t>(rows[i]) * row_bytes, row_bytes);
  }
  return result;
}

StringTensor gather(const StringTensor& strings, const Positions& rows) {
  if (rows.is_run() && rows.stride() == 1) {
    const int64_t first = rows.size() == 0 ? 0 : rows[0];
    return strings.slice(0, first, first + rows.size());
  }
  std::vector<int64_t> shape = strings.sizes();
  const int64_t row_size = shape[0] == 0 ? 0 : strings.numel() / shape[0];
  shape[0] = rows.size();
  std::vector<std::string> values;
  values.reserve(static_cast<size_t>(rows.size() * row_size));
  for (int64_t i = 0; i < rows.size(); ++i) {
    for (int64_t k = 0; k < row_size; ++k) values.emplace_back(strings[rows[i] * row_size + k]);
  }
  return StringTensor(values, shape);
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
  if (has_composites(block)) return num_rows_of_composites(block);
  int64_t rows = -1;
  block.for_each([&](const Leaf& leaf) {
    if (rows >= 0) return;
    rows = leaf.is_tensor() ? leaf.tensor().size(0) : leaf.strings().size(0);
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
  return block.map([row](const Leaf& leaf) -> Leaf {
    if (leaf.is_tensor()) return leaf.tensor().select(0, row);
    return leaf.strings().select(0, row);
  });
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
  return block.map([&](const Leaf& leaf) -> Leaf {
    if (leaf.is_tensor()) return gather(leaf.tensor(), rows);
    return gather(leaf.strings(), rows);
  });
}

}  // namespace cohort::internal
