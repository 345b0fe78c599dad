#include "cohort/train/bundle/box_cover.h"

#include <gtest/gtest.h>

namespace cohort::internal {
namespace {

using train::TensorSlice;

bool is_exact(const std::vector<int64_t>& shape, const std::vector<TensorSlice>& boxes) {
  BoxCover cover(shape);
  for (const TensorSlice& box : boxes) cover.add(box);
  return cover.is_exact();
}

TEST(BoxCover, WhatMakesUpTheTensor) {
  EXPECT_TRUE(is_exact({4, 3}, {{{0, 0}, {4, 3}}}));
  EXPECT_TRUE(is_exact({4, 3}, {{{3, 0}, {1, 3}}, {{0, 0}, {3, 3}}}));
  EXPECT_TRUE(is_exact({2}, {{{0}, {1}}, {{1}, {0}}, {{1}, {1}}})) << "an empty box is no harm";
  EXPECT_TRUE(is_exact({}, {{{}, {}}}));
  EXPECT_TRUE(is_exact({0, 5}, {}));
  const int64_t far = int64_t{1} << 61;
  EXPECT_TRUE(is_exact({far}, {{{0}, {far - 1}}, {{far - 1}, {1}}}));
  // Five boxes around a middle one: no line cuts the tensor in two without cutting a box.
  EXPECT_TRUE(is_exact(
      {3, 3},
      {{{0, 0}, {1, 2}}, {{0, 2}, {2, 1}}, {{2, 1}, {1, 2}}, {{1, 0}, {2, 1}}, {{1, 1}, {1, 1}}}));
}

TEST(BoxCover, OverlapsAndGapsOfTheSameSize) {
  EXPECT_FALSE(is_exact({4}, {{{0}, {2}}, {{0}, {2}}}));
  EXPECT_FALSE(is_exact({4}, {{{0}, {2}}, {{1}, {2}}}));
  EXPECT_FALSE(is_exact({2, 2}, {{{0, 0}, {1, 2}}, {{0, 0}, {2, 1}}}));
  EXPECT_FALSE(
      is_exact({2, 2}, {{{0, 0}, {1, 1}}, {{1, 1}, {1, 1}}, {{0, 1}, {1, 1}}, {{0, 1}, {1, 1}}}));
}

TEST(BoxCover, TooManyAndTooFew) {
  EXPECT_FALSE(is_exact({4}, {}));
  EXPECT_FALSE(is_exact({}, {}));
  EXPECT_FALSE(is_exact({}, {{{}, {}}, {{}, {}}}));
  EXPECT_FALSE(is_exact({4}, {{{0}, {3}}}));
  EXPECT_FALSE(is_exact({4}, {{{0}, {4}}, {{0}, {1}}}));
}

TEST(BoxCover, ManyBoxesTakeNoLongerThanTheyAreMany) {
  BoxCover cover({100'000, 2, 2});
  for (int64_t i = 0; i < 100'000; ++i) cover.add({{i, 0, 0}, {1, 2, 1}});
  EXPECT_FALSE(cover.is_exact());
  for (int64_t i = 0; i < 100'000; ++i) cover.add({{i, 0, 1}, {1, 2, 1}});
  EXPECT_TRUE(cover.is_exact());
}

}  // namespace
}  // namespace cohort::internal
