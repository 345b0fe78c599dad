#include "cohort/core/threads/backoff.h"

#include <gtest/gtest.h>

namespace cohort::internal {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using Clock = Backoff::Clock;

TEST(Backoff, PausesDoubleUpToTheLongest) {
  Backoff backoff(milliseconds(10), milliseconds(50));
  for (const int pause : {10, 20, 40, 50, 50}) EXPECT_EQ(backoff.next(), milliseconds(pause));
}

TEST(Backoff, OfOnePauseStayTheSame) {
  Backoff backoff(milliseconds(3));
  for (int i = 0; i < 3; ++i) EXPECT_EQ(backoff.next(), milliseconds(3));
}

TEST(Backoff, AreNeverLongerThanTheLongestNorBeyondAClocksRange) {
  EXPECT_EQ(Backoff(hours(2), hours(1)).next(), hours(1));
  Backoff backoff(Clock::duration::max() / 2 + milliseconds(1), Clock::duration::max());
  backoff.next();
  EXPECT_EQ(backoff.next(), Clock::duration::max());
}

TEST(Backoff, EndAtTheDeadline) {
  Backoff backoff{hours(1)};
  const auto deadline = Clock::now() + milliseconds(5);
  EXPECT_TRUE(backoff.sleep(deadline));
  EXPECT_GE(Clock::now(), deadline);
  EXPECT_FALSE(backoff.sleep(deadline));
}

}  // namespace
}  // namespace cohort::internal
