#include "cohort/keras/layers/preprocessing/quantile_summary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

namespace cohort::internal {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::vector<float> up_to(int n) {
  std::vector<float> values(static_cast<size_t>(n));
  std::iota(values.begin(), values.end(), 0.f);
  return values;
}

// In batches of 32, as Keras reads an array.
QuantileSummary summary_of(const std::vector<float>& values, double epsilon) {
  QuantileSummary summary(epsilon);
  for (size_t begin = 0; begin < values.size(); begin += 32) {
    const size_t end = std::min(begin + 32, values.size());
    EXPECT_TRUE(summary.add({values.begin() + static_cast<std::ptrdiff_t>(begin),
                             values.begin() + static_cast<std::ptrdiff_t>(end)}));
  }
  return summary;
}

// What Keras 2.15 has in Discretization.summary and bin_boundaries, to the bit.
TEST(QuantileSummary, IsThatOfKeras) {
  const QuantileSummary summary = summary_of(up_to(100), 0.1);
  EXPECT_THAT(summary.values(),
              ElementsAre(9.399999618530273f, 18.799999237060547f, 28.466665267944336f,
                          39.599998474121094f, 49.0f, 58.93333053588867f, 69.79999542236328f,
                          79.19999694824219f, 88.5999984741211f, 99.0f));
  EXPECT_THAT(
      summary.weights(),
      ElementsAre(9.399999618530273f, 9.399999618530273f, 9.40000057220459f, 9.399998664855957f,
                  9.400001525878906f, 9.40000057220459f, 9.399998664855957f, 9.399998664855957f,
                  9.400001525878906f, 9.400001525878906f));
  EXPECT_THAT(summary.boundaries(4), ElementsAre(23.63333511352539f, 49.000003814697266f, 74.5f));
  EXPECT_THAT(summary.boundaries(1), IsEmpty());
}

TEST(QuantileSummary, OfFewNumbersIsAllOfThem) {
  const QuantileSummary summary = summary_of({3, 1, 2}, 0.01);
  EXPECT_THAT(summary.values(), ElementsAre(1, 2, 3));
  EXPECT_THAT(summary.weights(), ElementsAre(1, 1, 1));
  EXPECT_THAT(summary.boundaries(4), ElementsAre(1, 2));
  EXPECT_THAT(QuantileSummary(0.01).boundaries(4), IsEmpty());
}

// Also where Keras is far off: merging many small batches moves quantiles upwards.
TEST(QuantileSummary, TakesBoundedMemoryAndDriftsAsKeras) {
  std::vector<float> values = up_to(100'000);
  for (size_t i = 0; i < values.size(); ++i) std::swap(values[i], values[i * 7919 % values.size()]);
  const QuantileSummary summary = summary_of(values, 0.01);
  EXPECT_LE(summary.values().size(), 101u);
  EXPECT_THAT(summary.boundaries(4), ElementsAre(56274.125f, 77792.3125f, 92617.875f));
  QuantileSummary of_one_batch(0.01);
  EXPECT_TRUE(of_one_batch.add(values));
  EXPECT_THAT(of_one_batch.boundaries(4), ElementsAre(24750, 49500, 74250));
}

TEST(QuantileSummary, OfInfinities) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  std::vector<float> mixed;
  for (int i = 0; i < 50; ++i) mixed.insert(mixed.end(), {-kInf, 1, 2, kInf});
  const QuantileSummary summary = summary_of(mixed, 0.1);
  const std::vector<float> boundaries = summary.boundaries(4);
  EXPECT_TRUE(std::is_sorted(boundaries.begin(), boundaries.end()));
  EXPECT_TRUE(
      std::none_of(boundaries.begin(), boundaries.end(), [](float x) { return std::isnan(x); }));
  QuantileSummary torn(0.3);
  EXPECT_FALSE(torn.add({-kInf, -kInf, kInf, kInf, kInf}));
  EXPECT_TRUE(torn.empty());
}

// A damaged checkpoint may have any numbers: none may crash.
TEST(QuantileSummary, OfWhatIsNoSummary) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  for (const std::vector<float>& weights :
       {std::vector<float>{kNan, 1, 2}, {0, 0, 0}, {-1, -2, 3}, {1, -5, 1}}) {
    const QuantileSummary summary(0.1, {3, kNan, 1}, weights);
    EXPECT_LE(summary.boundaries(2).size(), 3u);
  }
}

}  // namespace
}  // namespace cohort::internal
