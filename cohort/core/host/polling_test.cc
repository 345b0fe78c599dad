#include "cohort/core/host/polling.h"

#include <gtest/gtest.h>

namespace cohort::internal {
namespace {

using std::chrono::hours;
using std::chrono::microseconds;
using std::chrono::nanoseconds;
using Clock = std::chrono::steady_clock;

int yields = 0;
void count_yield() noexcept { ++yields; }
// A neighbour gets a slice.
void lose_core() noexcept {
  ++yields;
  const auto end = Clock::now() + CoreContention::kLate;
  while (Clock::now() < end) spin_pause();
}

struct Place {
  explicit Place(Polling::Yield yield = count_yield) : polling(contention, yield) { yields = 0; }

  // Makes the cores look contended, as somebody who has just been late does.
  void contend() { contention.note(Clock::now() + hours(1)); }
  // How often one wait looks in vain.
  int looks(nanoseconds limit = microseconds(1)) {
    int count = 0;
    EXPECT_FALSE(polling.poll([&] { return ++count < 0; }, limit));
    return count;
  }

  CoreContention contention;
  Polling polling;
};

TEST(Polling, EndsWithWhatItLooksFor) {
  Place place;
  int looks = 0;
  EXPECT_TRUE(place.polling.poll([&] { return ++looks == 1000; }, hours(1)));
  EXPECT_EQ(looks, 1000);
}

TEST(Polling, WithoutTimeLooksOnce) {
  Place place;
  EXPECT_EQ(place.looks(nanoseconds(0)), 1);
}

TEST(Polling, YieldsBetweenLooksWhereCoresAreFree) {
  bool yielded = false;
  // On a busy machine this thread may be kept from its core meanwhile.
  for (int attempt = 0; attempt < 1000 && !yielded; ++attempt) {
    Place place;
    int looks = 0;
    EXPECT_TRUE(place.polling.poll([&] { return ++looks == 1000; }, hours(1)));
    yielded = yields == 1000 / 64;
  }
  EXPECT_TRUE(yielded);
}

TEST(Polling, NeverYieldsWhereCoresAreContended) {
  Place place;
  place.contend();
  for (int i = 0; i < 100; ++i) place.looks(microseconds(100));
  EXPECT_EQ(yields, 0);
}

TEST(Polling, AYieldThatTookASliceIsTheLast) {
  Place place(lose_core);
  int looks = 0;
  EXPECT_TRUE(place.polling.poll([&] { return ++looks == 1000; }, hours(1)));
  EXPECT_TRUE(place.contention.is_contended(Clock::now()));
  EXPECT_EQ(yields, 1);
}

TEST(Polling, WhereNoneOfTheLastFewHelpedOneOfSixteenLooks) {
  Place place;
  place.contend();
  for (int i = 0; i < 3; ++i) EXPECT_GT(place.looks(), 1);
  for (int round = 0; round < 3; ++round) {
    EXPECT_GT(place.looks(), 1);
    for (int i = 0; i < 15; ++i) EXPECT_EQ(place.looks(), 1);
  }
  // The next one that looks finds something: all look again.
  int looks = 0;
  EXPECT_TRUE(place.polling.poll([&] { return ++looks == 3; }, hours(1)));
  for (int i = 0; i < 3; ++i) EXPECT_GT(place.looks(), 1);
}

TEST(Polling, WhereCoresAreFreeEveryWaitLooks) {
  Place place;
  for (int i = 0; i < 100; ++i) {
    const int looks = place.looks();
    EXPECT_TRUE(looks > 1 || place.contention.is_contended(Clock::now()));
  }
}

}  // namespace
}  // namespace cohort::internal
