#include "cohort/ops/plan/chunks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cohort::internal::plan {
namespace {

using ::testing::ElementsAre;
using ::testing::Le;
using ::testing::SizeIs;

TEST(Chunks, CoverTheBatchInOrder) {
  for (int64_t batch = 1; batch < 300; ++batch) {
    for (const int64_t widest : {1, 20'000, 1'000'000}) {
      const Chunks chunks(batch, widest);
      int64_t next = 0;
      for (size_t lane = 0; lane < chunks.lanes.size(); ++lane) {
        ASSERT_FALSE(chunks.lanes[lane].empty());
        for (const Chunk& chunk : chunks.lanes[lane]) {
          ASSERT_EQ(chunk.lane, static_cast<int>(lane));
          ASSERT_EQ(chunk.first, next);
          ASSERT_THAT(chunks.sizes, ::testing::Contains(chunk.count));
          ASSERT_LE(chunk.count, chunks.largest);
          next += chunk.count;
        }
      }
      ASSERT_EQ(next, batch);
      ASSERT_THAT(chunks.sizes, SizeIs(Le(2)));
      ASSERT_THAT(chunks.lanes, SizeIs(Le(8)));
    }
  }
}

TEST(Chunks, FillACache) {
  EXPECT_THAT(Chunks(8, 100).sizes, ElementsAre(4));
  EXPECT_THAT(Chunks(64, 100).sizes, ElementsAre(8));
  EXPECT_THAT(Chunks(64, 1'000'000).sizes, ElementsAre(1));
  EXPECT_THAT(Chunks(10, 100).sizes, ElementsAre(4, 3));
}

}  // namespace
}  // namespace cohort::internal::plan
