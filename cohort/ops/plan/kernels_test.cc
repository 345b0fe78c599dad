#include "cohort/ops/plan/kernels.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <vector>

namespace cohort::internal::plan {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;

TEST(PlanKernels, ColumnSumsAreAdded) {
  for (const int64_t rows : {1, 31, 32, 65, 4000}) {
    for (const int64_t channels : {1, 3, 64, 70}) {
      std::vector<float> values(static_cast<size_t>(rows * channels));
      std::vector<double> expected(static_cast<size_t>(channels), 1.);
      for (size_t i = 0; i < values.size(); ++i) {
        values[i] = static_cast<float>((i * 7919) % 97) / 97.f - 0.5f;
        expected[i % static_cast<size_t>(channels)] += values[i];
      }
      std::vector<double> sums(static_cast<size_t>(channels), 1.);
      add_column_sums(values.data(), rows, channels, sums.data());
      for (size_t c = 0; c < sums.size(); ++c) EXPECT_THAT(sums[c], DoubleNear(expected[c], 1e-3));
    }
  }
}

TEST(PlanKernels, CropAndItsOpposite) {
  const Crop part{.height = 3, .width = 4, .kept_height = 2, .kept_width = 3};
  std::vector<float> images(24);
  std::iota(images.begin(), images.end(), 1.f);
  std::vector<float> kept(12);
  crop(part, 2, images.data(), kept.data());
  EXPECT_THAT(kept, ElementsAre(1, 2, 3, 5, 6, 7, 13, 14, 15, 17, 18, 19));
  std::vector<float> back(24, -1.f);
  uncrop(part, 2, kept.data(), back.data());
  EXPECT_THAT(back, ElementsAre(1, 2, 3, 0, 5, 6, 7, 0, 0, 0, 0, 0, 13, 14, 15, 0, 17, 18, 19, 0, 0,
                                0, 0, 0));
}

TEST(PlanKernels, CropWithGapsAndItsOpposite) {
  const Crop part{
      .height = 3, .width = 6, .kept_height = 2, .kept_width = 4, .pixel = 2, .steps = {2, 2}};
  std::vector<float> images(18);
  std::iota(images.begin(), images.end(), 1.f);
  std::vector<float> kept(8);
  crop(part, 1, images.data(), kept.data());
  EXPECT_THAT(kept, ElementsAre(1, 2, 5, 6, 13, 14, 17, 18));
  std::vector<float> back(18, -1.f);
  uncrop(part, 1, kept.data(), back.data());
  EXPECT_THAT(back, ElementsAre(1, 2, 0, 0, 5, 6, 0, 0, 0, 0, 0, 0, 13, 14, 0, 0, 17, 18));
}

}  // namespace
}  // namespace cohort::internal::plan
