#include "cohort/train/summary/histogram.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

#include "cohort/core/structure/contiguous_elements.h"

namespace cohort::internal {
namespace {

struct Range {
  double min = std::numeric_limits<double>::infinity();
  double max = -std::numeric_limits<double>::infinity();
  int64_t count = 0;  // of finite values
};

template <class Number>
Range range_of(std::span<const Number> values) {
  Range range;
  for (const Number number : values) {
    const auto value = static_cast<double>(number);
    if (!std::isfinite(value)) continue;
    range.min = std::min(range.min, value);
    range.max = std::max(range.max, value);
    ++range.count;
  }
  return range;
}

template <class Number>
std::vector<double> count_values(std::span<const Number> values, int64_t buckets) {
  std::vector<double> rows(static_cast<size_t>(3 * buckets));
  const Range range = range_of(values);
  if (range.count == 0 || buckets == 0) return rows;
  const auto row = [&](int64_t i) { return &rows[static_cast<size_t>(3 * i)]; };
  // Halves, since the difference of two finite numbers may be infinite.
  const double half_width = (range.max / 2 - range.min / 2) / static_cast<double>(buckets);
  for (int64_t i = 0; i < buckets; ++i) {
    row(i)[0] = range.min + 2 * half_width * static_cast<double>(i);
    row(i)[1] = range.min + 2 * half_width * static_cast<double>(i + 1);
  }
  row(buckets - 1)[1] = range.max;
  if (range.min == range.max) {
    for (int64_t i = 0; i < buckets; ++i) row(i)[0] = row(i)[1] = range.max;
    row(buckets - 1)[2] = static_cast<double>(range.count);
    return rows;
  }
  const double width = (range.max - range.min) / static_cast<double>(buckets);
  for (const Number number : values) {
    const auto value = static_cast<double>(number);
    if (!std::isfinite(value)) continue;
    const double position = std::isfinite(width) && width > 0
                                ? (value - range.min) / width
                                : (value / 2 - range.min / 2) / half_width;
    const double last = static_cast<double>(buckets - 1);
    // Not a number where the range is too narrow to be divided.
    const double bucket = position >= 0 ? std::min(std::floor(position), last) : 0;
    row(static_cast<int64_t>(bucket))[2] += 1;
  }
  return rows;
}

}  // namespace

std::vector<double> histogram_buckets(const Tensor& values, int64_t buckets) {
  const bool single = values.scalar_type() == float32;
  const Tensor numbers =
      contiguous_elements(values.detach().to(c10::kCPU, single ? float32 : float64));
  const auto count = static_cast<size_t>(numbers.numel());
  const int64_t wanted = std::max<int64_t>(buckets, 0);
  return single ? count_values(std::span<const float>(numbers.data_ptr<float>(), count), wanted)
                : count_values(std::span<const double>(numbers.data_ptr<double>(), count), wanted);
}

}  // namespace cohort::internal
