#include "cohort/cluster/same_host/stall.h"

#include <gtest/gtest.h>

namespace cohort::internal::rpc {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using std::chrono::seconds;

class StallTest : public ::testing::Test {
 protected:
  nanoseconds tick(bool expects_more, uint64_t moved, nanoseconds passed = milliseconds(100)) {
    now_ += passed;
    return stall_.stands_still(expects_more, moved, now_);
  }

  Stall stall_;
  Stall::Time now_{hours(1000)};
};

TEST_F(StallTest, CountsWhileNothingMoves) {
  EXPECT_EQ(tick(true, 0), nanoseconds(0)) << "the first tick knows of no time before";
  EXPECT_EQ(tick(true, 5), nanoseconds(0));
  EXPECT_EQ(tick(true, 5), milliseconds(100));
  EXPECT_EQ(tick(true, 5), milliseconds(200));
  EXPECT_EQ(tick(true, 6), nanoseconds(0));
  EXPECT_EQ(tick(true, 6), milliseconds(100));
}

TEST_F(StallTest, NothingStandsStillWhereNothingIsExpected) {
  EXPECT_EQ(tick(true, 5), nanoseconds(0));
  EXPECT_EQ(tick(false, 5), nanoseconds(0));
  EXPECT_EQ(tick(true, 5), milliseconds(100));
}

TEST_F(StallTest, AProcessThatWasStoppedItselfBlamesNobody) {
  EXPECT_EQ(tick(true, 5), nanoseconds(0));
  EXPECT_EQ(tick(true, 5, hours(1)), seconds(1));
}

}  // namespace
}  // namespace cohort::internal::rpc
