#include "cohort/parameter_server/store/shard_ties.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cohort::internal {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr ShardKey kOwner{.variable = 0}, kFirst{.variable = 1}, kSecond{.variable = 2};

TEST(ShardTies, TellsOnceWhatWasTied) {
  ShardTies ties;
  ties.tie(kFirst, kOwner);
  ties.tie(kFirst, kOwner);
  ties.tie(kSecond, kOwner);
  EXPECT_EQ(ties.size(), 2);
  EXPECT_THAT(ties.release(kOwner), ElementsAre(kFirst, kSecond));
  EXPECT_THAT(ties.release(kOwner), IsEmpty());
  EXPECT_EQ(ties.size(), 0);
}

// As a model that is trained by one optimizer after another.
TEST(ShardTies, WhatIsReleasedBeforeItsOwnerLeavesNothing) {
  ShardTies ties;
  ties.tie(kSecond, kOwner);
  for (int64_t i = 10; i < 20; ++i) {
    const ShardKey slot{.variable = i};
    ties.tie(slot, kOwner);
    EXPECT_THAT(ties.release(slot), IsEmpty());
    EXPECT_EQ(ties.size(), 1);
  }
  EXPECT_THAT(ties.release(kOwner), ElementsAre(kSecond));
}

TEST(ShardTies, AShardMayHaveSeveralOwnersOrItself) {
  ShardTies ties;
  ties.tie(kFirst, kOwner);
  ties.tie(kFirst, kSecond);
  ties.tie(kSecond, kSecond);
  EXPECT_THAT(ties.release(kSecond), ElementsAre(kFirst));
  EXPECT_THAT(ties.release(kOwner), ElementsAre(kFirst));
  EXPECT_EQ(ties.size(), 0);
}

}  // namespace
}  // namespace cohort::internal
