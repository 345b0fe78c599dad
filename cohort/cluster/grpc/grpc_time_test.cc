#include "cohort/cluster/grpc/grpc_time.h"

#include <gtest/gtest.h>

#include <limits>

namespace cohort::internal::rpc {
namespace {

using std::chrono::hours;
using std::chrono::seconds;
using std::chrono::steady_clock;

gpr_timespec from_now(int64_t seconds) {
  return gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC), gpr_time_from_seconds(seconds, GPR_TIMESPAN));
}

TEST(GrpcTimeTest, DeadlinesArriveAsTheyAre) {
  const auto now = steady_clock::now();
  const auto in_a_minute = to_steady(from_now(60));
  EXPECT_GE(in_a_minute, now + seconds(59));
  EXPECT_LE(in_a_minute, steady_clock::now() + seconds(61));
  EXPECT_LT(to_steady(from_now(-60)), now);
  EXPECT_EQ(to_steady(gpr_inf_future(GPR_CLOCK_MONOTONIC)), steady_clock::time_point::max());
}

// The longest that a call's header can say, and what an int64_t of nanoseconds cannot hold.
TEST(GrpcTimeTest, NoDeadlineOverflows) {
  constexpr int64_t kLongest = 99'999'999LL * 3600;
  const auto now = steady_clock::now();
  EXPECT_GT(to_steady(from_now(kLongest)), now + hours(24 * 364));
  EXPECT_LT(to_steady(from_now(-kLongest)), now);
  EXPECT_LT(to_steady(gpr_inf_past(GPR_CLOCK_MONOTONIC)), now);
  EXPECT_GT(to_steady(deadline_after(std::chrono::nanoseconds::max())), now + hours(24 * 364));
}

TEST(GrpcTimeTest, ArgumentsAreInts) {
  EXPECT_EQ(to_argument(1000), 1000);
  EXPECT_EQ(to_argument(int64_t{365} * 24 * 3600 * 1000), std::numeric_limits<int>::max());
}

}  // namespace
}  // namespace cohort::internal::rpc
