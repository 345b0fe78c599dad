#include "cohort/transform/analysis/radix_sort.h"

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace cohort::internal {
namespace {

constexpr size_t kDigits = 8;  // of a byte
constexpr size_t kDigitValues = 256;

// An unsigned number with the same order: negative ones come first, the greatest magnitude first.
uint64_t key_of(double value) {
  const auto bits = std::bit_cast<uint64_t>(value);
  const auto is_negative = static_cast<uint64_t>(static_cast<int64_t>(bits) >> 63);
  return bits ^ (is_negative | uint64_t{1} << 63);
}

}  // namespace

void radix_sort(std::vector<double>& values, std::vector<double>& scratch) {
  std::array<std::array<uint32_t, kDigitValues>, kDigits> counts = {};
  for (const double value : values) {
    const uint64_t key = key_of(value);
    for (size_t digit = 0; digit < kDigits; ++digit) ++counts[digit][key >> (8 * digit) & 0xff];
  }
  scratch.resize(values.size());
  for (size_t digit = 0; digit < kDigits; ++digit) {
    std::array<uint32_t, kDigitValues>& places = counts[digit];
    if (values.empty() || places[key_of(values[0]) >> (8 * digit) & 0xff] == values.size()) {
      continue;  // all have the same: the lowest ones of what was float32 or a small integer
    }
    uint32_t begin = 0;
    for (uint32_t& place : places) begin += std::exchange(place, begin);
    for (const double value : values)
      scratch[places[key_of(value) >> (8 * digit) & 0xff]++] = value;
    values.swap(scratch);
  }
}

}  // namespace cohort::internal
