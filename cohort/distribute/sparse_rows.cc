#include "cohort/distribute/sparse_rows.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <utility>

#include "cohort/collective/slices.h"
#include "cohort/core/error.h"

namespace cohort::internal {
namespace {

using Row = SparseRows::Row;

constexpr int kDigitBits = 11;
constexpr size_t kNumDigits = size_t{1} << kDigitBits;

size_t digit(const Row& row, int shift) {
  return static_cast<size_t>(row.id >> shift) & (kNumDigits - 1);
}

// Stable, digit by digit from the lowest: ids are small numbers, and comparing them costs more.
void sort_by_id(std::vector<Row>& rows) {
  const auto by_id = [](const Row& a, const Row& b) { return a.id < b.id; };
  if (std::is_sorted(rows.begin(), rows.end(), by_id)) return;
  if (rows.size() < kNumDigits / 8) {
    std::stable_sort(rows.begin(), rows.end(), by_id);
    return;
  }
  const int64_t largest = std::max_element(rows.begin(), rows.end(), by_id)->id;
  std::vector<Row> sorted(rows.size());
  for (int shift = 0; shift < 63 && largest >> shift != 0; shift += kDigitBits) {
    std::array<size_t, kNumDigits> places{};
    for (const Row& row : rows) ++places[digit(row, shift)];
    size_t before = 0;
    for (size_t& place : places) before += std::exchange(place, before);
    for (const Row& row : rows) sorted[places[digit(row, shift)]++] = row;
    rows.swap(sorted);
  }
}

}  // namespace

bool SparseRows::are_in(const Tensor& gradient, int64_t max_row_size) {
  return gradient.layout() == at::kSparse && gradient.is_cpu() && gradient.sparse_dim() == 1 &&
         gradient.dim() > 1 &&
         gradient.numel() / std::max<int64_t>(gradient.size(0), 1) <= max_row_size;
}

SparseRows::SparseRows(const Tensor& gradient) : values_(gradient._values().contiguous()) {
  const Tensor indices = gradient._indices().contiguous();
  const auto* ids = indices.data_ptr<int64_t>();
  const auto* values = static_cast<const char*>(values_.data_ptr());
  const auto count = static_cast<size_t>(indices.size(1));
  const size_t bytes_per_row = count == 0 ? 0 : values_.nbytes() / count;
  rows_.resize(count);
  for (size_t i = 0; i < count; ++i) {
    if (ids[i] < 0 || ids[i] >= gradient.size(0)) {
      throw InvalidArgumentError(
          str("a sparse gradient ", describe(gradient), " has a row ", ids[i]));
    }
    rows_[i] = {ids[i], values + i * bytes_per_row};
  }
  sort_by_id(rows_);
}

SparseRows::SparseRows(std::span<const int64_t> ids, const char* values, int64_t bytes_per_row) {
  rows_.reserve(ids.size());
  for (const int64_t id : ids) {
    rows_.push_back({id, values});
    values += bytes_per_row;
  }
}

void SparseRowSum::skip_to(int64_t id) {
  for (Source& source : sources_) {
    source.next = std::lower_bound(source.next, source.end, id,
                                   [](const Row& row, int64_t value) { return row.id < value; });
  }
}

int64_t SparseRowSum::next_id(int64_t end) const {
  int64_t id = end;
  for (const Source& source : sources_) {
    if (source.next != source.end) id = std::min(id, source.next->id);
  }
  return id;
}

const char* SparseRowSum::take(int64_t id, int64_t row_size, DType dtype, char* sum,
                               char* scratch) {
  const char* total = nullptr;
  for (Source& source : sources_) {
    parts_.clear();
    for (; source.next != source.end && source.next->id == id; ++source.next) {
      parts_.push_back(source.next->values);
    }
    if (parts_.empty()) continue;
    auto part = static_cast<const char*>(parts_[0]);
    if (parts_.size() > 1) {
      char* const target = total == nullptr ? sum : scratch;
      collective::add_slices(target, parts_, row_size, dtype);
      part = target;
    }
    if (total != nullptr) {
      const void* const both[] = {total, part};
      collective::add_slices(sum, both, row_size, dtype);
      part = sum;
    }
    total = part;
  }
  return total;
}

void SparseRowSum::prefetch(const char* base, int64_t row_bytes) const {
  constexpr int64_t kAhead = 4, kCacheLine = 64;
  const auto fetch = [&](const char* row) {
    for (int64_t byte = 0; byte < row_bytes; byte += kCacheLine) __builtin_prefetch(row + byte);
  };
  for (const Source& source : sources_) {
    if (source.end - source.next <= kAhead) continue;
    const Row& row = source.next[kAhead];
    fetch(base + row.id * row_bytes);
    fetch(row.values);
  }
}

void MergedRows::take_all(SparseRowSum& sum, int64_t row_size, DType dtype) {
  constexpr int64_t kEnd = std::numeric_limits<int64_t>::max();
  const auto row_bytes =
      static_cast<size_t>(row_size) * static_cast<size_t>(c10::elementSize(dtype));
  ids.clear();
  values.clear();
  std::vector<char> scratch(row_bytes);
  for (int64_t id = sum.next_id(kEnd); id != kEnd; id = sum.next_id(kEnd)) {
    ids.push_back(id);
    values.resize(values.size() + row_bytes);
    char* const out = values.data() + values.size() - row_bytes;
    const char* const found = sum.take(id, row_size, dtype, out, scratch.data());
    if (found != out) std::memcpy(out, found, row_bytes);
  }
}

}  // namespace cohort::internal
