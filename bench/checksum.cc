#include "checksum.h"

#include <vector>

namespace bench {
namespace {

uint64_t weight(uint64_t place) { return (place + 1) * 2654435761u | 1; }

uint64_t mixed(uint64_t sum) {
  sum ^= sum >> 29;
  return sum * 0xbf58476d1ce4e5b9u;
}

// The rows' sums so far, and how many numbers of each they have.
struct Rows {
  std::vector<uint64_t> sums;
  std::vector<uint64_t> places;

  void add(size_t row, uint64_t number) { sums[row] += number * weight(places[row]++); }
};

void add_leaf(Rows& rows, const cohort::Leaf& leaf) {
  if (leaf.is_strings()) {
    for (size_t row = 0; row < rows.sums.size(); ++row) {
      const std::string_view text = leaf.strings()[static_cast<int64_t>(row)];
      for (const char byte : text) rows.add(row, static_cast<unsigned char>(byte));
      rows.add(row, text.size());
    }
    return;
  }
  const cohort::Tensor numbers = leaf.tensor().to(cohort::int64).contiguous();
  const auto* number = static_cast<const int64_t*>(numbers.data_ptr());
  const size_t columns = static_cast<size_t>(numbers.numel()) / rows.sums.size();
  for (size_t row = 0; row < rows.sums.size(); ++row) {
    for (size_t i = 0; i < columns; ++i) rows.add(row, static_cast<uint64_t>(*number++));
  }
}

}  // namespace

void Checksum::add(const cohort::Structure& batch) {
  const auto leaves = batch.flatten();
  const auto count = static_cast<size_t>(leaves.front().sizes().front());
  if (count == 0) return;
  Rows rows{std::vector<uint64_t>(count), std::vector<uint64_t>(count)};
  for (const cohort::Leaf& leaf : leaves) add_leaf(rows, leaf);
  for (const uint64_t sum : rows.sums) value_ += mixed(sum);
  elements_ += static_cast<int64_t>(count);
}

}  // namespace bench
