#include "cohort/ops/bulk_draws.h"

#include <gtest/gtest.h>

namespace cohort::internal {
namespace {

// Of the large numbers every other word is refused.
TEST(BulkDrawsTest, AreThoseOfBelow) {
  for (uint64_t n : {uint64_t{1}, uint64_t{6}, uint64_t{1} << 40, (uint64_t{1} << 63) + 1}) {
    for (uint64_t start : {0, 1, 3, 100}) {
      Philox random(1, 2), expected(1, 2);
      random.seek(start);
      expected.seek(start);
      {
        BulkDraws draws(random);
        for (int i = 0; i < 2000; ++i) ASSERT_EQ(draws.below(n), expected.below(n)) << n;
      }
      EXPECT_EQ(random.position(), expected.position()) << n;
      EXPECT_EQ(random.next_u32(), expected.next_u32()) << n;
    }
  }
}

TEST(BulkDrawsTest, WithoutADrawNothingIsDrawn) {
  Philox random(1, 2);
  random.seek(5);
  { const BulkDraws draws(random); }
  EXPECT_EQ(random.position(), 5u);
}

}  // namespace
}  // namespace cohort::internal
