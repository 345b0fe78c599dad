#include "cohort/core/host/core_contention.h"

#include <gtest/gtest.h>

namespace cohort::internal {
namespace {

using std::chrono::milliseconds;

// How long cores count as contended from now on, where nobody notes more.
milliseconds hold(const CoreContention& contention, CoreContention::Time now) {
  milliseconds time{0};
  while (contention.is_contended(now + time)) ++time;
  return time;
}

TEST(CoreContention, BeginsWithTheFirstThatIsLate) {
  CoreContention contention;
  const CoreContention::Time now{std::chrono::hours(1)};
  EXPECT_FALSE(contention.is_contended(now));
  contention.note(now);
  EXPECT_EQ(hold(contention, now), CoreContention::kShortest);
}

TEST(CoreContention, LastsAsLongAsThreadsAreLate) {
  CoreContention contention;
  CoreContention::Time now{std::chrono::hours(1)};
  for (int i = 0; i < 1000; ++i) {
    contention.note(now);
    EXPECT_EQ(hold(contention, now), CoreContention::kShortest);
    now += milliseconds(50);
  }
}

// Whoever looks whether it is over pays for that.
TEST(CoreContention, LastsLongerEachTimeThatItIsFoundAgain) {
  CoreContention contention;
  CoreContention::Time now{std::chrono::hours(1)};
  for (const int expected : {100, 200, 400, 800, 1600, 1600}) {
    contention.note(now);
    EXPECT_EQ(hold(contention, now), milliseconds(expected));
    now += milliseconds(expected + 1);
  }
  now += std::chrono::seconds(2);
  contention.note(now);
  EXPECT_EQ(hold(contention, now), CoreContention::kShortest);
}

}  // namespace
}  // namespace cohort::internal
