#include "cohort/data/iteration/sparse_rows.h"

#include <ATen/ops/_sparse_coo_tensor_unsafe.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <utility>

namespace cohort::internal::sparse {
namespace {

Tensor coalesced(const Tensor& coo) { return coo.is_coalesced() ? coo : coo.coalesce(); }

// Indices [sparse dimensions, n] in order, each once.
Tensor make(const Tensor& indices, const Tensor& values, at::IntArrayRef shape) {
  return at::_sparse_coo_tensor_unsafe(indices, values, shape)._coalesced_(true);
}

// The values of rows [begin, end) of a coalesced tensor: their first and their end.
std::pair<int64_t, int64_t> range_of(const Tensor& coo, int64_t begin, int64_t end) {
  const Tensor rows = coo._indices().select(0, 0).contiguous();
  const auto* first = rows.data_ptr<int64_t>();
  const auto* last = first + rows.size(0);
  return {std::lower_bound(first, last, begin) - first, std::lower_bound(first, last, end) - first};
}

// Parts below each other, part i from row offsets[i] on.
Tensor join(const std::vector<Tensor>& parts, const std::vector<int64_t>& offsets,
            const std::vector<int64_t>& shape, bool new_dimension) {
  std::vector<Tensor> indices;
  std::vector<Tensor> values;
  for (size_t i = 0; i < parts.size(); ++i) {
    const Tensor part = coalesced(parts[i]);
    Tensor own = part._indices();
    if (new_dimension) {
      own = at::cat({at::full({1, own.size(1)}, offsets[i], own.options()), own});
    } else {
      own = own.clone();
      own.select(0, 0).add_(offsets[i]);
    }
    indices.push_back(own);
    values.push_back(part._values());
  }
  return make(at::cat(indices, 1), at::cat(values), shape);
}

}  // namespace

Tensor slice(const Tensor& coo, int64_t begin, int64_t end) {
  const Tensor whole = coalesced(coo);
  const auto [first, last] = range_of(whole, begin, end);
  Tensor indices = whole._indices().slice(1, first, last).clone();
  indices.select(0, 0).sub_(begin);
  std::vector<int64_t> shape = whole.sizes().vec();
  shape[0] = end - begin;
  return make(indices, whole._values().slice(0, first, last), shape);
}

Tensor select(const Tensor& coo, int64_t row) {
  const Tensor whole = coalesced(coo);
  const auto [first, last] = range_of(whole, row, row + 1);
  const Tensor values = whole._values().slice(0, first, last);
  const std::vector<int64_t> shape = whole.sizes().slice(1).vec();
  if (whole.sparse_dim() == 1) {
    return first == last ? at::zeros(shape, values.options()) : values.select(0, 0);
  }
  return make(whole._indices().slice(0, 1).slice(1, first, last), values, shape);
}

Tensor gather(const Tensor& coo, const Positions& rows) {
  const Tensor whole = coalesced(coo);
  if (rows.size() == 0) return slice(whole, 0, 0);
  if (rows.is_run() && rows.stride() == 1) return slice(whole, rows[0], rows[0] + rows.size());
  std::vector<Tensor> parts;
  for (int64_t i = 0; i < rows.size(); ++i) parts.push_back(slice(whole, rows[i], rows[i] + 1));
  return concat(parts);
}

Tensor stack(const std::vector<Tensor>& parts) {
  std::vector<int64_t> offsets(parts.size());
  for (size_t i = 0; i < parts.size(); ++i) offsets[i] = static_cast<int64_t>(i);
  std::vector<int64_t> shape = parts[0].sizes().vec();
  shape.insert(shape.begin(), std::ssize(parts));
  return join(parts, offsets, shape, /*new_dimension=*/true);
}

Tensor concat(const std::vector<Tensor>& parts) {
  std::vector<int64_t> offsets;
  std::vector<int64_t> shape = parts[0].sizes().vec();
  shape[0] = 0;
  for (const Tensor& part : parts) {
    offsets.push_back(shape[0]);
    shape[0] += part.size(0);
  }
  return join(parts, offsets, shape, /*new_dimension=*/false);
}

Tensor empty(const std::vector<int64_t>& shape, DType dtype) {
  const auto rank = static_cast<int64_t>(shape.size());
  return make(at::empty({rank, 0}, int64), at::empty({0}, dtype), shape);
}

}  // namespace cohort::internal::sparse
