#include "cohort/parameter_server/variables/partitioner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cohort/core/error.h"
#include "cohort/core/testing_errors.h"

namespace cohort::distribute::partitioners {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(FixedShards, DividesOneAxisIntoAtMostItsSize) {
  const FixedShardsPartitioner two(2);
  EXPECT_THAT(two({10, 3}, float32), ElementsAre(2, 1));
  EXPECT_THAT(two({1, 3}, float32), ElementsAre(1, 1));
  EXPECT_THAT(two({10, 3}, float32, 1), ElementsAre(1, 2));
  EXPECT_THAT(two({0, 3}, float32), ElementsAre(1, 1));
}

TEST(MinSize, MakesNoShardSmaller) {
  EXPECT_THAT(MinSizePartitioner({.min_shard_bytes = 4, .max_shards = 2})({6, 1}, float32),
              ElementsAre(2, 1));
  EXPECT_THAT(MinSizePartitioner({.min_shard_bytes = 4, .max_shards = 10})({6, 1}, float32),
              ElementsAre(6, 1));
  EXPECT_THAT(MinSizePartitioner()({1 << 20, 64}, float32), ElementsAre(1, 1));
}

TEST(MinSize, Guide001sVariables) {
  const MinSizePartitioner partitioner({.min_shard_bytes = 256 << 10, .max_shards = 2});
  EXPECT_THAT(partitioner({8, 16384}, float32), ElementsAre(2, 1));
  EXPECT_THAT(partitioner({16384, 1}, float32), ElementsAre(1, 1));
}

TEST(MaxSize, MakesNoShardLargerThanItCan) {
  EXPECT_THAT(MaxSizePartitioner({.max_shard_bytes = 8})({6, 1}, float32), ElementsAre(3, 1));
  EXPECT_THAT(MaxSizePartitioner({.max_shard_bytes = 8, .max_shards = 2})({6, 1}, float32),
              ElementsAre(2, 1));
  EXPECT_THAT(MaxSizePartitioner({.max_shard_bytes = 1})({6, 100}, float32), ElementsAre(6, 1));
  EXPECT_THAT(MaxSizePartitioner({.max_shard_bytes = 1024})({6, 1}, float32), ElementsAre(1, 1));
}

TEST(Partitioners, RefuseWhatTheyCannotUse) {
  EXPECT_THAT(thrown<InvalidArgumentError>([] { FixedShardsPartitioner(0); }),
              HasSubstr("num_shards must be at least 1"));
  EXPECT_THAT(thrown<InvalidArgumentError>([] { MinSizePartitioner({.max_shards = 0}); }),
              HasSubstr("max_shards"));
  EXPECT_THAT(thrown<InvalidArgumentError>([] { MinSizePartitioner({.min_shard_bytes = -1}); }),
              HasSubstr("but is -1"));
  EXPECT_THAT(thrown<InvalidArgumentError>([] { MaxSizePartitioner({}); }),
              HasSubstr("max_shard_bytes"));
  EXPECT_THAT(thrown<InvalidArgumentError>([] { FixedShardsPartitioner(2)({}, float32); }),
              HasSubstr("rank 0"));
  EXPECT_THAT(thrown<InvalidArgumentError>([] { MinSizePartitioner()({3}, float32, 1); }),
              HasSubstr("axis 1"));
}

}  // namespace
}  // namespace cohort::distribute::partitioners
