#include "cohort/transform/analysis/exact_sum.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "cohort/core/error.h"
#include "cohort/core/testing_errors.h"

namespace cohort::internal {
namespace {

using Limits = std::numeric_limits<double>;

double sum_of(const std::vector<double>& values, const FloatForm& form = kFloat64Form) {
  ExactSum sum;
  for (const double value : values) sum.add(value);
  return sum.rounded(form);
}

// Another way to exact sums: a list of floats that do not overlap, by Shewchuk.
double expansion_sum(const std::vector<double>& values) {
  std::vector<double> parts;
  for (double x : values) {
    size_t kept = 0;
    for (double y : parts) {
      if (std::fabs(x) < std::fabs(y)) std::swap(x, y);
      const double high = x + y;
      const double low = y - (high - x);
      if (low != 0) parts[kept++] = low;
      x = high;
    }
    parts.resize(kept);
    parts.push_back(x);
  }
  double total = 0;
  while (!parts.empty()) {
    const double x = total;
    const double y = parts.back();
    parts.pop_back();
    total = x + y;
    const double low = y - (total - x);
    if (low == 0) continue;
    if (!parts.empty() && (low < 0) == (parts.back() < 0)) {  // a tie that the rest decides
      const double twice = low * 2;
      const double next = total + twice;
      if (twice == next - total) total = next;
    }
    break;
  }
  return total;
}

TEST(ExactSum, CancelsWithoutALoss) {
  EXPECT_EQ(sum_of({}), 0);
  EXPECT_EQ(sum_of({1e300, 1, -1e300}), 1);
  EXPECT_EQ(sum_of({1e300, 1e-300, -1e300}), 1e-300);
  EXPECT_EQ(sum_of({Limits::denorm_min(), Limits::max(), -Limits::max()}), Limits::denorm_min());
  EXPECT_EQ(sum_of({-3.5, 1.25}), -2.25);
}

TEST(ExactSum, RoundsOnceToEven) {
  const double ulp = std::ldexp(1, -52);
  EXPECT_EQ(sum_of({1, ulp / 2}), 1);
  EXPECT_EQ(sum_of({1, ulp / 2, 1e-300}), 1 + ulp);
  EXPECT_EQ(sum_of({1 + ulp, ulp / 2}), 1 + 2 * ulp);
  EXPECT_EQ(sum_of({1 + ulp, ulp / 2, -1e-300}), 1 + ulp);
  EXPECT_EQ(sum_of({-1, -ulp / 2, -1e-300}), -1 - ulp);
  // Through float64 to float32 it would be rounded twice, to 1.
  const double half = std::ldexp(1, -24);
  EXPECT_EQ(sum_of({1, half, 1e-30}, kFloat32Form), 1 + 2 * half);
  EXPECT_EQ(sum_of({1, half}, kFloat32Form), 1);
  EXPECT_EQ(sum_of({2049}, kFloat16Form), 2048);
}

TEST(ExactSum, ReachesItsFormsLimits) {
  EXPECT_EQ(sum_of({Limits::max(), Limits::max()}), Limits::infinity());
  EXPECT_EQ(sum_of({-Limits::max(), -Limits::max()}), -Limits::infinity());
  EXPECT_EQ(sum_of({Limits::max(), Limits::max(), -Limits::max()}), Limits::max());
  EXPECT_EQ(static_cast<float>(sum_of({3e38, 3e38}, kFloat32Form)),
            std::numeric_limits<float>::infinity());
  const double least = std::ldexp(1, -149);
  EXPECT_EQ(sum_of({least * 1.5}, kFloat32Form), 2 * least);
  EXPECT_EQ(sum_of({least / 2}, kFloat32Form), 0);
}

TEST(ExactSum, AgreesWithExpansionsInAnyOrder) {
  std::mt19937_64 random(7);
  for (int trial = 0; trial < 50; ++trial) {
    std::vector<double> values;
    for (int i = 0; i < 200; ++i) {
      const int exponent = static_cast<int>(random() % (trial % 2 == 0 ? 60 : 1900)) - 950;
      values.push_back(std::ldexp(static_cast<double>(static_cast<int64_t>(random())), exponent));
      if (random() % 3 == 0) values.push_back(-values[random() % values.size()]);
    }
    const double expected = expansion_sum(values);
    EXPECT_EQ(sum_of(values), expected);
    std::shuffle(values.begin(), values.end(), random);
    EXPECT_EQ(sum_of(values), expected);
  }
}

TEST(ExactSum, NormalizesBeforeALimbOverflows) {
  ExactSum sum;
  constexpr int64_t kMost = (int64_t{1} << 53) - 1;
  for (int64_t done = 0; done < 4; ++done) {
    sum.make_room(ExactSum::kMaxAdditions);  // as if there had been so many
    sum.add_scaled(-kMost, 10);
  }
  EXPECT_EQ(sum.rounded(kFloat64Form), std::ldexp(-4.0 * static_cast<double>(kMost), 10));
}

TEST(ExactSum, IsSavedAndAdded) {
  ExactSum sum;
  sum.add(1e300).add(-2.5).add(1e-320);
  ExactSum other;
  other.add_saved(sum.saved(), "a sum");
  EXPECT_EQ(other.saved(), sum.saved());
  other.add(-1e300).add(2.5);
  EXPECT_EQ(other.rounded(kFloat64Form), 1e-320);
  EXPECT_FALSE(other.is_zero());
  other.add(-1e-320);
  EXPECT_TRUE(other.is_zero());
  EXPECT_EQ(other.saved(), ExactSum().saved());
  // A negative sum has its sign in the last limb.
  ExactSum negative;
  negative.add(-1.0);
  ExactSum copy;
  copy.add_saved(negative.saved(), "a sum");
  EXPECT_EQ(copy.rounded(kFloat64Form), -1);
}

TEST(ExactSum, RefusesDamagedBytes) {
  ExactSum sum;
  ExactSquares squares;
  squares.add(std::ldexp(1, 900)).add(std::ldexp(1, 1000));
  expect_error<DataLossError>([&] { sum.add_saved(squares.saved(), "a sum"); }, "digits");
  expect_error<DataLossError>(
      [&] {
        sum.add_saved(
            "\x12\x0a"
            "12345",
            "a sum");
      },
      "a sum");
}

TEST(ExactMoments, AreRoundedQuotients) {
  std::mt19937 random(3);
  for (int trial = 0; trial < 300; ++trial) {
    const int64_t n = 1 + static_cast<int64_t>(random() % 50);
    ExactSum sum;
    ExactSquares squares;
    int64_t total = 0;
    int64_t total_squares = 0;
    for (int64_t i = 0; i < n; ++i) {
      const int64_t value = static_cast<int64_t>(random() % 20001) - 10000;
      sum.add_scaled(value, -7);
      squares.add_square(static_cast<UInt128>(value * value), -14);
      total += value;
      total_squares += value * value;
    }
    // Both sides of these divisions are exact, and a division is rounded once.
    const auto count = static_cast<double>(n);
    EXPECT_EQ(rounded_mean(sum, n, kFloat64Form),
              std::ldexp(static_cast<double>(total) / count, -7));
    EXPECT_EQ(
        rounded_variance(sum, squares, n, kFloat64Form),
        std::ldexp(static_cast<double>(n * total_squares - total * total) / (count * count), -14));
  }
}

TEST(ExactMoments, SurviveCancellationAndTheLimits) {
  // 1e9 + {4, 7, 13, 16}: the textbook's formula in float64 gets a variance of its own.
  ExactSum sum;
  ExactSquares squares;
  for (const int64_t value : {1000000004, 1000000007, 1000000013, 1000000016}) {
    sum.add_scaled(value, 0);
    squares.add_square(static_cast<UInt128>(value) * static_cast<UInt128>(value), 0);
  }
  EXPECT_EQ(rounded_variance(sum, squares, 4, kFloat64Form), 22.5);

  ExactSum ends;
  ExactSquares square_ends;
  for (const double value : {Limits::max(), -Limits::max()}) {
    const Parts parts = parts_of(value);
    ends.add(value);
    square_ends.add_square(
        static_cast<UInt128>(static_cast<Int128>(parts.mantissa) * parts.mantissa),
        2 * parts.exponent);
  }
  EXPECT_EQ(rounded_mean(ends, 2, kFloat64Form), 0);
  EXPECT_EQ(rounded_variance(ends, square_ends, 2, kFloat64Form), Limits::infinity());
}

}  // namespace
}  // namespace cohort::internal
