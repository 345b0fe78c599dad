#include "cohort/parameter_server/store/row_ids.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cstring>
#include <vector>

namespace cohort::internal {
namespace {

struct Item {
  int64_t id;
  int64_t place;
};

bool ascends(const int64_t* ids, int64_t count) {
  for (int64_t i = 1; i < count; ++i) {
    if (ids[i] <= ids[i - 1]) return false;
  }
  return true;
}

// Sorts by id, stable: digit by digit from the lowest, as many as the largest id has. A comparison
// sort takes four times as long for the batches of a recommender.
std::vector<Item> sorted_items(const int64_t* ids, int64_t count) {
  constexpr int kDigitBits = 11;
  constexpr size_t kDigits = size_t{1} << kDigitBits;
  constexpr int64_t kFew = 256;
  std::vector<Item> items(static_cast<size_t>(count));
  int64_t largest = 0;
  for (int64_t i = 0; i < count; ++i) {
    items[static_cast<size_t>(i)] = {ids[i], i};
    largest = std::max(largest, ids[i]);
  }
  if (count < kFew) {
    std::stable_sort(items.begin(), items.end(),
                     [](const Item& a, const Item& b) { return a.id < b.id; });
    return items;
  }
  std::vector<Item> other(items.size());
  for (int shift = 0; shift < 63 && (largest >> shift) > 0; shift += kDigitBits) {
    std::vector<size_t> next(kDigits + 1);
    const auto digit = [shift](const Item& item) {
      return static_cast<size_t>(item.id >> shift) & (kDigits - 1);
    };
    for (const Item& item : items) ++next[digit(item) + 1];
    for (size_t d = 0; d < kDigits; ++d) next[d + 1] += next[d];
    for (const Item& item : items) other[next[digit(item)]++] = item;
    items.swap(other);
  }
  return items;
}

template <class T>
void add_rows(const Tensor& sum, const Tensor& rows, const Tensor& positions) {
  const int64_t* position = positions.data_ptr<int64_t>();
  const int64_t size = rows.size(0) == 0 ? 0 : rows.numel() / rows.size(0);
  T* const out = sum.data_ptr<T>();
  const T* row = rows.data_ptr<T>();
  for (int64_t i = 0; i < rows.size(0); ++i, row += size) {
    T* const target = out + position[i] * size;
    for (int64_t k = 0; k < size; ++k) target[k] += row[k];
  }
}

}  // namespace

DistinctRows distinct_rows(const Tensor& ids) {
  const int64_t count = ids.numel();
  const int64_t* given = ids.data_ptr<int64_t>();
  if (ascends(given, count)) return {ids, at::arange(count, int64)};
  const std::vector<Item> items = sorted_items(given, count);
  DistinctRows distinct{at::empty({count}, int64), at::empty({count}, int64)};
  int64_t* const out = distinct.ids.data_ptr<int64_t>();
  int64_t* const positions = distinct.positions.data_ptr<int64_t>();
  int64_t last = -1;
  for (const Item& item : items) {
    if (last < 0 || out[last] != item.id) out[++last] = item.id;
    positions[item.place] = last;
  }
  distinct.ids = distinct.ids.narrow(0, 0, last + 1);
  return distinct;
}

Tensor positions_in(const Tensor& sorted, const Tensor& ids) {
  Tensor positions = at::empty({ids.numel()}, int64);
  int64_t* const out = positions.data_ptr<int64_t>();
  const int64_t* const begin = sorted.data_ptr<int64_t>();
  const int64_t* const end = begin + sorted.numel();
  const int64_t* id = ids.data_ptr<int64_t>();
  const int64_t* at = begin;
  for (int64_t i = 0; i < ids.numel(); ++i) {
    at = std::lower_bound(at, end, id[i]);
    out[i] = at != end && *at == id[i] ? at - begin : -1;
  }
  return positions;
}

Tensor gather_rows(const Tensor& table, const Tensor& ids) {
  constexpr int64_t kAhead = 8;
  std::vector<int64_t> shape = table.sizes().vec();
  shape[0] = ids.numel();
  Tensor rows = at::empty(shape, table.options().requires_grad(false));
  if (rows.numel() == 0) return rows;
  const auto bytes = static_cast<int64_t>(table.nbytes()) / table.size(0);
  const auto* from = static_cast<const char*>(table.data_ptr());
  auto* to = static_cast<char*>(rows.data_ptr());
  const int64_t* id = ids.data_ptr<int64_t>();
  const int64_t count = ids.numel();
  for (int64_t i = 0; i < count; ++i, to += bytes) {
    if (i + kAhead < count) __builtin_prefetch(from + id[i + kAhead] * bytes);
    std::memcpy(to, from + id[i] * bytes, static_cast<size_t>(bytes));
  }
  return rows;
}

Tensor sum_rows(const Tensor& rows, const Tensor& positions, int64_t count) {
  std::vector<int64_t> shape = rows.sizes().vec();
  shape[0] = count;
  Tensor sum = at::zeros(shape, rows.options().requires_grad(false));
  const Tensor dense = rows.contiguous();
  switch (rows.scalar_type()) {
    case at::kFloat:
      add_rows<float>(sum, dense, positions);
      break;
    case at::kDouble:
      add_rows<double>(sum, dense, positions);
      break;
    default:
      sum.index_add_(0, positions, dense);
  }
  return sum;
}

}  // namespace cohort::internal
