#include "cohort/transform/analysis/radix_sort.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>

namespace cohort::internal {
namespace {

TEST(RadixSort, OrdersAsComparisonsDo) {
  std::mt19937_64 random(1);
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  std::vector<double> scratch;
  for (const size_t count : {size_t{0}, size_t{1}, size_t{2}, size_t{5000}}) {
    for (const bool is_float32 : {false, true}) {
      std::vector<double> values = {kInfinity, -kInfinity, 0, 5e-324, -5e-324};
      if (count < 5) values.clear();
      while (values.size() < count) {
        double value = std::bit_cast<double>(random());
        if (is_float32) value = static_cast<float>(std::ldexp(static_cast<double>(random()), -70));
        if (!std::isnan(value)) values.push_back(value);
      }
      std::vector<double> expected = values;
      std::sort(expected.begin(), expected.end());
      radix_sort(values, scratch);
      EXPECT_EQ(values, expected);
    }
  }
  std::vector<double> zeros = {0.0, -0.0, 0.0};
  radix_sort(zeros, scratch);
  EXPECT_TRUE(std::signbit(zeros[0]));
  EXPECT_FALSE(std::signbit(zeros[1]));
}

}  // namespace
}  // namespace cohort::internal
