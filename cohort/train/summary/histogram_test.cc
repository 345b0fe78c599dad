#include "cohort/train/summary/histogram.h"

#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>

#include <cmath>
#include <limits>

namespace cohort::internal {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(Histogram, CountsInRangesOfEqualWidth) {
  EXPECT_THAT(histogram_buckets(at::tensor({0.0, 1.0, 2.0, 4.0}), 2),
              ElementsAre(0, 2, 2, 2, 4, 2));
  EXPECT_THAT(histogram_buckets(at::tensor({3, -1, 0}, int64), 1), ElementsAre(-1, 3, 3));
  EXPECT_THAT(histogram_buckets(at::tensor({1, 0, 1}).to(boolean), 2),
              ElementsAre(0, 0.5, 1, 0.5, 1, 2));
}

TEST(Histogram, EqualValuesAreInTheLastBucket) {
  EXPECT_THAT(histogram_buckets(at::tensor({2.0F, 2.0F}), 3),
              ElementsAre(2, 2, 0, 2, 2, 0, 2, 2, 2));
}

TEST(Histogram, WithoutValuesOrBuckets) {
  EXPECT_THAT(histogram_buckets(at::zeros({0, 3}), 2), ElementsAre(0, 0, 0, 0, 0, 0));
  EXPECT_THAT(histogram_buckets(at::tensor({1.0}), 0), IsEmpty());
  EXPECT_THAT(histogram_buckets(at::tensor({1.0}), -5), IsEmpty());
}

TEST(Histogram, WhatIsNotFiniteIsLeftOut) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  EXPECT_THAT(histogram_buckets(at::tensor({NAN, 0.0, kInf, 1.0, -kInf}), 2),
              ElementsAre(0, 0.5, 1, 0.5, 1, 1));
  EXPECT_THAT(histogram_buckets(at::tensor({NAN, -kInf}), 1), ElementsAre(0, 0, 0));
}

TEST(Histogram, HugeAndTinyRanges) {
  constexpr double kMax = std::numeric_limits<double>::max();
  EXPECT_THAT(histogram_buckets(at::tensor({-kMax, 0.0, kMax}, float64), 2),
              ElementsAre(-kMax, 0, 1, 0, kMax, 2));
  constexpr double kTiny = std::numeric_limits<double>::denorm_min();
  const auto rows = histogram_buckets(at::tensor({0.0, kTiny}, float64), 30);
  double count = 0;
  for (size_t i = 2; i < rows.size(); i += 3) count += rows[i];
  EXPECT_EQ(count, 2);
}

}  // namespace
}  // namespace cohort::internal
