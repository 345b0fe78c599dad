#include "cohort/cluster/same_host/patience.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace cohort::internal::rpc {
namespace {

// Of so many waits, those that looked; each finds what it looks for, or never does.
int looks(Patience& patience, int waits, bool finds) {
  int count = 0;
  for (int i = 0; i < waits; ++i) {
    Patience::Look look(patience);
    if (!look.goes_on()) continue;
    ++count;
    if (finds) look.found();
  }
  return count;
}

class PatienceTest : public ::testing::Test {
 protected:
  PatienceTest() { patience_.allow(true); }

  bool free_ = true;
  Patience patience_{[this](Patience::Time) { return free_; }};
};

TEST_F(PatienceTest, LooksAsLongAsItHelps) { EXPECT_EQ(looks(patience_, 100, true), 100); }

TEST_F(PatienceTest, LooksOnlyWhereBothEndsCanHaveCores) {
  patience_.allow(false);
  EXPECT_EQ(looks(patience_, 100, true), 0);
}

TEST_F(PatienceTest, LooksOnlyWhereNobodyElseComputes) {
  free_ = false;
  EXPECT_EQ(looks(patience_, 100, true), 0);
  free_ = true;
  EXPECT_EQ(looks(patience_, 100, true), 100);
}

TEST_F(PatienceTest, LooksLessAndLessOftenInVain) {
  EXPECT_LE(looks(patience_, 10'000, false), 25);
  // What comes soon again is noticed by the few looks that are left.
  EXPECT_EQ(looks(patience_, 3'000, true) > 900, true);
}

TEST_F(PatienceTest, EndsALookThatFindsNothing) {
  Patience::Look look(patience_);
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (look.goes_on()) ASSERT_LT(std::chrono::steady_clock::now(), deadline);
}

TEST_F(PatienceTest, OneThreadOfAProcessLooks) {
  Patience::Look first(patience_);
  EXPECT_TRUE(first.goes_on());
  Patience other([](Patience::Time) { return true; });
  other.allow(true);
  EXPECT_EQ(looks(other, 100, true), 0);
}

}  // namespace
}  // namespace cohort::internal::rpc
