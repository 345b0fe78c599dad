#include "cohort/core/host/preemption_watch.h"

#include <gtest/gtest.h>

namespace cohort::internal {
namespace {

using std::chrono::milliseconds;

struct Process {
  CoreContention contention;
  int64_t preemptions = 1000;
  int counts = 0;
  std::optional<double> others;
  PreemptionWatch watch{contention,
                        [this] {
                          ++counts;
                          return preemptions;
                        },
                        [this] { return others; }};
  CoreContention::Time now{std::chrono::hours(1)};

  bool is_contended_after(milliseconds passed, int more) {
    preemptions += more;
    watch.look(now += passed);
    return contention.is_contended(now);
  }
};

TEST(PreemptionWatch, NotesPreemptionsThatComeOften) {
  Process process;
  EXPECT_FALSE(process.is_contended_after(milliseconds(20), 50));  // of the time before
  EXPECT_FALSE(process.is_contended_after(milliseconds(20), 1));
  EXPECT_TRUE(process.is_contended_after(milliseconds(20), 2));
}

TEST(PreemptionWatch, LongStepsMayHaveSome) {
  Process process;
  process.watch.look(process.now);
  EXPECT_FALSE(process.is_contended_after(milliseconds(1000), 49));
  EXPECT_TRUE(process.is_contended_after(milliseconds(1000), 50));
}

TEST(PreemptionWatch, OwnThreadsThatPreemptEachOtherAreNoContention) {
  Process process;
  process.others = 70;
  for (int i = 0; i < 100; ++i) EXPECT_FALSE(process.is_contended_after(milliseconds(20), 400));
}

TEST(PreemptionWatch, NoticesWithinTwoWindowsThatOthersHaveCores) {
  Process process;
  process.others = 70;
  process.watch.look(process.now);
  int looks = 0;
  do {
    *process.others += 0.3 * 0.02;
    ASSERT_LE(++looks, 20);
  } while (!process.is_contended_after(milliseconds(20), 2));
}

TEST(PreemptionWatch, WhatOthersHadLongAgoDoesNotCount) {
  Process process;
  process.others = 70;
  EXPECT_FALSE(process.is_contended_after(milliseconds(20), 0));
  EXPECT_FALSE(process.is_contended_after(milliseconds(20), 400));
  *process.others += 3600;
  EXPECT_FALSE(process.is_contended_after(milliseconds(2000), 400));
}

TEST(PreemptionWatch, CountsSeldom) {
  Process process;
  for (int i = 0; i < 1000; ++i) process.is_contended_after(milliseconds(1), 0);
  EXPECT_EQ(process.counts, 50);
}

}  // namespace
}  // namespace cohort::internal
