#include "cohort/core/host/free_cores.h"

#include <gtest/gtest.h>

namespace cohort::internal {
namespace {

using std::chrono::milliseconds;

struct Host {
  FreeCores::Time time{std::chrono::seconds(1)};
  std::optional<int> running = 2;
  int counts = 0;
  FreeCores cores{2, [this] {
                    ++counts;
                    return running;
                  }};

  bool free_after(milliseconds passed) { return cores.are_free(time += passed); }
};

TEST(FreeCores, AreFreeWhereNoMoreThreadsRunThanThereAreCores) {
  Host host;
  EXPECT_TRUE(host.free_after(milliseconds(0)));
  host.running = 3;
  EXPECT_FALSE(host.free_after(milliseconds(10)));
  host.running = 1;
  EXPECT_TRUE(host.free_after(milliseconds(1000)));
}

TEST(FreeCores, AreNotWhereTheSystemDoesNotTell) {
  Host host;
  host.running = std::nullopt;
  EXPECT_FALSE(host.free_after(milliseconds(0)));
}

TEST(FreeCores, ABusyHostIsCountedLessAndLessOften) {
  Host host;
  host.running = 3;
  for (int i = 0; i < 10'000; ++i) EXPECT_FALSE(host.free_after(milliseconds(1)));
  EXPECT_LE(host.counts, 20);
  EXPECT_GE(host.counts, 10);
  host.running = 2;
  EXPECT_TRUE(host.free_after(milliseconds(1000)));
  host.running = 3;  // found within milliseconds
  EXPECT_FALSE(host.free_after(milliseconds(10)));
  host.running = 2;  // and one thread that ran for a moment costs little
  EXPECT_TRUE(host.free_after(milliseconds(20)));
}

TEST(FreeCores, ReadsWhatTheKernelWrites) {
  EXPECT_EQ(running_threads("4.34 3.25 2.27 6/131 14620\n"), 6);
  EXPECT_EQ(running_threads("0.00 0.01 0.05 12/1310 2\n"), 12);
  for (const char* other : {"", "0.00 0.01", "0.00 0.01 0.05 x/131 1", "0.00 0.01 0.05 6",
                            "0.00 0.01 0.05 /131 1", "0.00 0.01 0.05 99999999999/131 1"}) {
    EXPECT_EQ(running_threads(other), std::nullopt) << other;
  }
}

}  // namespace
}  // namespace cohort::internal
