#include "cohort/data/iteration/leaf_rows.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <cstring>

#include "cohort/core/structure/contiguous_elements.h"

namespace cohort::internal {
namespace {

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

bool can_join(const Leaf& a, const Leaf& b, size_t from) {
  if (a.is_tensor() != b.is_tensor()) return false;
  const auto same = [&](const auto& x, const auto& y) {
    return x.size() == y.size() && x.size() >= from &&
           std::equal(x.begin() + from, x.end(), y.begin() + from);
  };
  if (a.is_strings()) return same(a.strings().sizes(), b.strings().sizes());
  return a.tensor().scalar_type() == b.tensor().scalar_type() &&
         same(a.tensor().sizes(), b.tensor().sizes());
}

int64_t num_rows_of_leaf(const Leaf& leaf) {
  return leaf.is_tensor() ? leaf.tensor().size(0) : leaf.strings().size(0);
}

Leaf select_leaf(const Leaf& leaf, int64_t row) {
  if (leaf.is_tensor()) return leaf.tensor().select(0, row);
  return leaf.strings().select(0, row);
}

Leaf gather_leaf(const Leaf& leaf, const Positions& rows) {
  if (leaf.is_tensor()) return gather(leaf.tensor(), rows);
  return gather(leaf.strings(), rows);
}

}  // namespace cohort::internal
