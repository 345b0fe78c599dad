// Python's rules of slices, and how a ShardedVariable goes by them.
#include <ATen/ops/arange.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "cohort/core/error.h"
#include "cohort/parameter_server/variables/sharded_variable.h"

namespace cohort::internal {
namespace {

using distribute::Ellipsis;
using distribute::NewAxis;
using distribute::Slice;
using distribute::SliceItem;

// The elements of a dimension of `size` that a slice takes.
struct Range {
  int64_t first = 0;
  int64_t step = 1;
  int64_t count = 0;
  Tensor ids() const { return at::arange(count, int64) * step + first; }
};

Range range_of(const Slice& slice, int64_t size, const std::string& name) {
  const int64_t step = slice.step.value_or(1);
  if (step == 0) throw InvalidArgumentError(str("a slice of '", name, "' has the step 0"));
  // The bounds of a slice; a step back ends before the first element.
  const int64_t lowest = step > 0 ? 0 : -1;
  const int64_t highest = step > 0 ? size : size - 1;
  const auto bound = [&](const std::optional<int64_t>& given, int64_t missing) {
    if (!given) return missing;
    return std::clamp(*given < 0 ? *given + size : *given, lowest, highest);
  };
  const int64_t start = bound(slice.start, step > 0 ? lowest : highest);
  const int64_t stop = bound(slice.stop, step > 0 ? highest : lowest);
  const int64_t distance = step > 0 ? stop - start : start - stop;
  // A step beyond the dimension takes one element, however long it is.
  const int64_t stride = step > 0 ? std::min(step, size + 1) : -std::max(step, -(size + 1));
  const int64_t count = distance <= 0 ? 0 : (distance - 1) / stride + 1;
  return {start, step > 0 ? stride : -stride, count};
}

int64_t index_in(int64_t index, int64_t size, size_t dimension, const std::string& name) {
  const int64_t found = index < 0 ? index + size : index;
  if (found >= 0 && found < size) return found;
  throw OutOfRangeError(str("index ", index, " of '", name, "' is out of range: dimension ",
                            dimension, " has ", size, " elements"));
}

// The items with the ellipsis written out, or put at the end: one for each dimension, and new ones.
std::vector<SliceItem> written_out(const std::vector<SliceItem>& items, size_t rank,
                                   const std::string& name) {
  size_t named = 0, ellipses = 0;
  for (const SliceItem& item : items) {
    if (std::holds_alternative<Ellipsis>(item.item())) {
      ++ellipses;
    } else if (!std::holds_alternative<NewAxis>(item.item())) {
      ++named;
    }
  }
  if (ellipses > 1 || named > rank) {
    throw InvalidArgumentError(str("'", name, "' of rank ", rank, " was indexed with ", named,
                                   " items and ", ellipses,
                                   " ellipses; there may be as many as "
                                   "dimensions, and one ellipsis"));
  }
  std::vector<SliceItem> all;
  all.reserve(items.size() + rank);
  const auto rest = [&] {
    for (size_t i = named; i < rank; ++i) all.emplace_back(Slice{});
  };
  for (const SliceItem& item : items) {
    if (std::holds_alternative<Ellipsis>(item.item())) {
      rest();
    } else {
      all.push_back(item);
    }
  }
  if (ellipses == 0) rest();
  return all;
}

// Some elements of dimension `d`.
Tensor along(const Tensor& tensor, int64_t d, const Range& range) {
  if (range.step == 1) return tensor.narrow(d, range.first, range.count);
  return tensor.index_select(d, range.ids());
}

// The elements that a mask of the first dimensions names.
Tensor masked(const std::vector<int64_t>& shape, const Tensor& mask,
              const std::function<Tensor(const Tensor&)>& rows, const std::string& name) {
  if (mask.scalar_type() != at::kBool) {
    throw InvalidArgumentError(str("'", name, "' cannot be indexed with a tensor of ",
                                   dtype_name(mask.scalar_type()),
                                   "; use sparse_read or nn::embedding_lookup"));
  }
  const auto dims = static_cast<size_t>(mask.dim());
  if (dims == 0 || dims > shape.size() || mask.sizes() != at::IntArrayRef(shape.data(), dims)) {
    throw InvalidArgumentError(str("a mask of shape ", shape_str(mask.sizes()), " does not fit '",
                                   name, "' of shape ", shape_str(shape)));
  }
  const Tensor flags = mask.to(at::kCPU);
  const Tensor in_rows = dims == 1 ? flags : flags.flatten(1).any(1);
  const Tensor needed = in_rows.nonzero().flatten();
  const Tensor some = rows(needed);
  const Tensor within = flags.index_select(0, needed);
  std::vector<int64_t> flat{within.numel()};
  flat.insert(flat.end(), shape.begin() + mask.dim(), shape.end());
  return some.reshape(flat).index_select(0, within.reshape({-1}).nonzero().flatten());
}

// `shape`: of the whole. `rows`: reads rows by their numbers, [n] of int64. `name`: for messages.
// Errors: those of ShardedVariable::index.
Tensor sliced(const std::vector<int64_t>& shape, const std::vector<SliceItem>& items,
              const std::function<Tensor(const Tensor& ids)>& rows, const std::string& name) {
  for (size_t i = 0; i < items.size(); ++i) {
    const auto* mask = std::get_if<Tensor>(&items[i].item());
    if (mask == nullptr) continue;
    if (i > 0 || !mask->defined()) {
      throw InvalidArgumentError(str("item ", i, " of the index of '", name, "' is ",
                                     mask->defined() ? "a tensor" : "an undefined tensor",
                                     "; a mask is the first item"));
    }
    const Tensor some = masked(shape, *mask, rows, name);
    if (items.size() == 1) return some;
    // What follows indexes the dimensions that the mask leaves.
    std::vector<SliceItem> rest{Slice{}};
    rest.insert(rest.end(), items.begin() + 1, items.end());
    const auto of_some = [&some](const Tensor& ids) { return some.index_select(0, ids); };
    return sliced(some.sizes().vec(), rest, of_some, name);
  }
  Tensor result;
  size_t dimension = 0;         // of the variable
  int64_t d = 0;                // of the result
  std::vector<int64_t> before;  // new dimensions ahead of the rows
  for (const SliceItem& one : written_out(items, shape.size(), name)) {
    if (std::holds_alternative<NewAxis>(one.item())) {
      if (dimension == 0) {
        before.push_back(1);
      } else {
        result = result.unsqueeze(d++);
      }
      continue;
    }
    const auto* number = std::get_if<int64_t>(&one.item());
    const int64_t size = shape[dimension];
    const Range range = number != nullptr ? Range{index_in(*number, size, dimension, name), 1, 1}
                                          : range_of(std::get<Slice>(one.item()), size, name);
    if (dimension == 0) {
      result = rows(range.ids());
    } else if (!(range.first == 0 && range.step == 1 && range.count == size)) {
      result = along(result, d, range);
    }
    ++dimension;
    if (number != nullptr) {
      result = result.select(d, 0);
    } else {
      ++d;
    }
    if (dimension == 1) {
      for (size_t i = 0; i < before.size(); ++i, ++d) result = result.unsqueeze(0);
    }
  }
  return result;
}

}  // namespace
}  // namespace cohort::internal

namespace cohort::distribute {

Tensor ShardedVariable::index(const std::vector<SliceItem>& items) const {
  return internal::sliced(
      shape(), items, [this](const Tensor& ids) { return rows(ids); }, name());
}

}  // namespace cohort::distribute
