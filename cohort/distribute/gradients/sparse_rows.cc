#include "cohort/distribute/gradients/sparse_rows.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <limits>
#include <utility>

#include "cohort/collective/add_in_tree.h"
#include "cohort/collective/slices.h"
#include "cohort/core/error.h"
#include "cohort/core/structure/contiguous_elements.h"

namespace cohort::internal {
namespace {

using Row = SparseRows::Row;

constexpr int64_t kNoId = std::numeric_limits<int64_t>::max();
// Up to here, rows are compared.
constexpr size_t kFewRows = 64;
// Sorting by one digit more takes less time than going through the places of a larger digit.
constexpr int kMostDigitBits = 11;

void insert_in_order(std::vector<Row>& rows) {
  for (size_t i = 1; i < rows.size(); ++i) {
    const Row row = rows[i];
    size_t place = i;
    for (; place > 0 && rows[place - 1].id > row.id; --place) rows[place] = rows[place - 1];
    rows[place] = row;
  }
}

// Stable, digit by digit from the lowest: ids are small numbers, and comparing them costs more.
// `largest`: of the ids; `sorted`: memory for as many rows.
void sort_by_id(std::vector<Row>& rows, int64_t largest, std::vector<Row>& sorted) {
  if (rows.size() <= kFewRows) return insert_in_order(rows);
  const int bits = std::bit_width(static_cast<uint64_t>(largest));
  const int digits = (bits + kMostDigitBits - 1) / kMostDigitBits;
  const int digit_bits = (bits + digits - 1) / digits;
  const size_t mask = (size_t{1} << digit_bits) - 1;
  sorted.resize(rows.size());
  std::array<uint32_t, size_t{1} << kMostDigitBits> places;
  for (int shift = 0; shift < bits; shift += digit_bits) {
    const auto digit = [=](const Row& row) { return static_cast<size_t>(row.id >> shift) & mask; };
    std::fill_n(places.begin(), mask + 1, 0);
    for (const Row& row : rows) ++places[digit(row)];
    uint32_t before = 0;
    for (size_t i = 0; i <= mask; ++i) before += std::exchange(places[i], before);
    for (const Row& row : rows) sorted[places[digit(row)]++] = row;
    rows.swap(sorted);
  }
}

}  // namespace

bool SparseRows::are_in(const Tensor& gradient, int64_t max_row_size) {
  return gradient.layout() == at::kSparse && gradient.is_cpu() && gradient.sparse_dim() == 1 &&
         gradient.dim() > 1 &&
         gradient.numel() / std::max<int64_t>(gradient.size(0), 1) <= max_row_size;
}

void SparseRows::assign(const Tensor& gradient) {
  values_ = contiguous_elements(gradient._values());
  const Tensor indices = gradient._indices().contiguous();
  const auto* ids = indices.data_ptr<int64_t>();
  const auto* values = static_cast<const char*>(values_.data_ptr());
  const auto count = static_cast<size_t>(indices.size(1));
  const size_t bytes_per_row = count == 0 ? 0 : values_.nbytes() / count;
  const int64_t num_rows = gradient.size(0);
  rows_.resize(count);
  int64_t largest = 0;
  bool is_sorted = true;
  for (size_t i = 0; i < count; ++i) {
    if (ids[i] < 0 || ids[i] >= num_rows) {
      throw InvalidArgumentError(
          str("a sparse gradient ", describe(gradient), " has a row ", ids[i]));
    }
    rows_[i] = {ids[i], values + i * bytes_per_row};
    is_sorted = is_sorted && ids[i] >= largest;
    largest = std::max(largest, ids[i]);
  }
  if (!is_sorted) sort_by_id(rows_, largest, sorted_);
}

void SparseRows::assign(std::span<const int64_t> ids, const char* values, int64_t bytes_per_row) {
  values_.reset();
  rows_.clear();
  for (const int64_t id : ids) {
    rows_.push_back({id, values});
    values += bytes_per_row;
  }
}

void SparseRows::clear() {
  values_.reset();
  rows_.clear();
}

void SparseRowSum::skip_to(int64_t id) {
  for (Source& source : sources_) {
    source.next = std::lower_bound(source.next, source.end, id,
                                   [](const Row& row, int64_t value) { return row.id < value; });
  }
}

int64_t SparseRowSum::next_id_of(const Sources& sources, int64_t end) {
  int64_t id = end;
  for (const Source& source : sources) {
    if (source.next != source.end) id = std::min(id, source.next->id);
  }
  return id;
}

const char* SparseRowSum::take(int64_t id, int64_t row_size, DType dtype, char* sum,
                               char* scratch) {
  if (additions_ != nullptr) return take_in_tree(id, row_size, dtype, sum);
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

const char* SparseRowSum::take_in_tree(int64_t id, int64_t row_size, DType dtype, char* sum) {
  const size_t row_bytes = static_cast<size_t>(row_size) * c10::elementSize(dtype);
  own_sums_.resize(sources_.size() * row_bytes);
  of_sources_.clear();
  const void* only = nullptr;
  size_t present = 0;
  for (size_t i = 0; i < sources_.size(); ++i) {
    Source& source = sources_[i];
    parts_.clear();
    for (; source.next != source.end && source.next->id == id; ++source.next) {
      parts_.push_back(source.next->values);
    }
    const void* own = parts_.empty() ? nullptr : parts_[0];
    if (parts_.size() > 1) {
      char* const target = own_sums_.data() + i * row_bytes;
      collective::add_slices(target, parts_, row_size, dtype);
      own = target;
    }
    if (own != nullptr) {
      only = own;
      ++present;
    }
    of_sources_.push_back(own);
  }
  if (present == 1) {
    if (only >= own_sums_.data() && only < own_sums_.data() + own_sums_.size()) {
      std::memcpy(sum, only, row_bytes);  // the next call writes there
      return sum;
    }
    return static_cast<const char*>(only);
  }
  void* const target = sum;
  collective::add_in_tree({&target, 1}, {of_sources_.data(), of_sources_.size()}, *additions_,
                          row_size, dtype);
  return sum;
}

void SparseRowSum::prefetch(std::span<char* const> tables, int64_t row_bytes) const {
  constexpr int64_t kAhead = 12, kCacheLine = 64;
  for (const Source& source : sources_) {
    if (source.end - source.next <= kAhead) continue;
    const Row& row = source.next[kAhead];
    for (int64_t byte = 0; byte < row_bytes; byte += kCacheLine) {
      __builtin_prefetch(row.values + byte);
    }
    for (char* const table : tables) {
      char* const place = table + row.id * row_bytes;
      for (int64_t byte = 0; byte < row_bytes; byte += kCacheLine) {
        __builtin_prefetch(place + byte, /*for writing*/ 1);
      }
    }
  }
}

int64_t SparseRowSum::num_rows() const {
  int64_t rows = 0;
  for (const Source& source : sources_) rows += source.end - source.next;
  return rows;
}

int64_t SparseRowSum::write_ids(int64_t* out) const {
  const int64_t* const begin = out;
  Sources left = sources_;
  for (int64_t id = next_id_of(left, kNoId); id != kNoId; id = next_id_of(left, kNoId)) {
    *out++ = id;
    for (Source& source : left) {
      while (source.next != source.end && source.next->id == id) ++source.next;
    }
  }
  return out - begin;
}

void SparseRowSum::take_all(int64_t row_size, DType dtype, char* out, char* scratch) {
  const int64_t row_bytes = row_size * static_cast<int64_t>(c10::elementSize(dtype));
  for (int64_t id = next_id(kNoId); id != kNoId; id = next_id(kNoId)) {
    prefetch({}, row_bytes);
    const char* const found = take(id, row_size, dtype, out, scratch);
    if (found != out) std::memcpy(out, found, static_cast<size_t>(row_bytes));
    out += row_bytes;
  }
}

void MergedRows::take_all(SparseRowSum& sum, int64_t row_size, DType dtype) {
  const auto row_bytes = static_cast<size_t>(row_size) * c10::elementSize(dtype);
  ids.resize(static_cast<size_t>(sum.num_rows()));
  ids.resize(static_cast<size_t>(sum.write_ids(ids.data())));
  values.resize(ids.size() * row_bytes);
  std::vector<char> scratch(row_bytes);
  sum.take_all(row_size, dtype, values.data(), scratch.data());
}

}  // namespace cohort::internal
