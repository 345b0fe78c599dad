#include "cohort/collective/slices.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cohort/core/error.h"

namespace cohort::collective {
namespace {

TEST(SliceOf, CoversEverythingOnce) {
  for (const int64_t size : {0, 1, 15, 16, 17, 100, 1000, 100003}) {
    for (const int count : {1, 2, 3, 5, 8}) {
      int64_t next = 0;
      for (int rank = 0; rank < count; ++rank) {
        const SliceRange range = slice_of(size, rank, count);
        EXPECT_EQ(range.begin, next);
        EXPECT_LE(range.begin, range.end);
        EXPECT_TRUE(range.begin % 16 == 0 || range.begin == size);
        next = range.end;
      }
      EXPECT_EQ(next, size);
    }
  }
}

TEST(AddSlices, AddsInTheOrderOfSources) {
  // 1e8 + 1 - 1e8 is 0 in float32 in this order, 1 in another.
  const float a[] = {1e8F}, b[] = {1.0F}, c[] = {-1e8F};
  float out[1];
  add_slices(out, std::vector<const void*>{a, b, c}, 1, float32);
  EXPECT_EQ(out[0], 0.0F);
  add_slices(out, std::vector<const void*>{a, c, b}, 1, float32);
  EXPECT_EQ(out[0], 1.0F);
}

TEST(AddSlices, ANullSourceCountsAsZeros) {
  const double a[] = {1, 2}, b[] = {10, 20};
  double out[2];
  add_slices(out, std::vector<const void*>{a, nullptr, b}, 2, float64);
  EXPECT_THAT(out, ::testing::ElementsAre(11, 22));
  add_slices(out, std::vector<const void*>{nullptr}, 2, float64);
  EXPECT_THAT(out, ::testing::ElementsAre(0, 0));
}

TEST(AddSlices, TakesManyElementsAndMayWriteOverASource) {
  std::vector<int64_t> a(5000), b(5000);
  for (int64_t i = 0; i < 5000; ++i) {
    a[i] = i;
    b[i] = 2 * i;
  }
  add_slices(a.data(), std::vector<const void*>{a.data(), b.data()}, 5000, int64);
  for (int64_t i = 0; i < 5000; ++i) ASSERT_EQ(a[i], 3 * i);
}

TEST(AddSlices, ShortFloatsAddUpInFloat32) {
  // 2048 + 1 is 2048 in float16; three of them added in float32 are 2051, rounded once to 2052.
  const at::Half a[] = {2048}, b[] = {1}, c[] = {2};
  at::Half out[1];
  add_slices(out, std::vector<const void*>{a, b, c}, 1, DType::Half);
  EXPECT_EQ(static_cast<float>(out[0]), 2052.0F);
}

TEST(AddSlices, InPlaceEachBufferBecomesTheSum) {
  for (const size_t num_buffers : {1, 2, 3, 4, 5, 8}) {
    for (const int64_t count : {0, 1, 17, 70'000}) {
      std::vector<std::vector<float>> buffers(num_buffers);
      std::vector<void*> all;
      for (size_t b = 0; b < num_buffers; ++b) {
        for (int64_t i = 0; i < count; ++i) {
          buffers[b].push_back(0.1F * static_cast<float>(i % 97) + static_cast<float>(b));
        }
        all.push_back(buffers[b].data());
      }
      std::vector<float> sums(static_cast<size_t>(count));
      add_slices(sums.data(), std::vector<const void*>(all.begin(), all.end()), count, float32);
      add_slices_in_place(all, count, float32);
      for (const auto& buffer : buffers) ASSERT_EQ(buffer, sums);
    }
  }
}

TEST(AddSlices, RefusesWhatCannotBeAdded) {
  bool value = true;
  EXPECT_THROW(add_slices(&value, std::vector<const void*>{&value}, 1, boolean),
               InvalidArgumentError);
  EXPECT_THROW(check_can_add(boolean), InvalidArgumentError);
  EXPECT_NO_THROW(check_can_add(float32));
}

}  // namespace
}  // namespace cohort::collective
