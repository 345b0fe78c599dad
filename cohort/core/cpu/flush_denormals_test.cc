#include "cohort/core/cpu/flush_denormals.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <limits>
#include <thread>
#include <vector>

#include "cohort/core/cpu/intra_op_parallel.h"
#include "cohort/core/cpu/intra_op_team.h"
#include "cohort/core/cpu/intra_op_threads.h"
#include "cohort/core/threads/wait_point.h"

namespace cohort::internal {
namespace {

#if defined(__x86_64__) || defined(__aarch64__)

// Not for the compiler to compute.
bool flushes() {
  volatile float smallest_normal = std::numeric_limits<float>::min();
  volatile float denormal = std::numeric_limits<float>::denorm_min();
  volatile float result = smallest_normal * 0.5F;
  volatile float sum = denormal + denormal;
  return result == 0.0F && sum == 0.0F;
}

TEST(ScopedFlushDenormals, FlushesForItsLifetime) {
  ASSERT_FALSE(flushes());
  {
    const ScopedFlushDenormals flush;
    EXPECT_TRUE(flushes());
    {
      const ScopedFlushDenormals again;
      EXPECT_TRUE(flushes());
    }
    EXPECT_TRUE(flushes());
  }
  EXPECT_FALSE(flushes());
}

TEST(ScopedFlushDenormals, ReachesTheThreadsThatShareAnOperation) {
  std::thread([] {
    const ScopedIntraOpThreads threads(2);
    std::vector<int> before(2, -1), inside(2, -1);
    const auto look = [&](std::vector<int>& seen) {
      intra_op_parallel_for(0, 2, 1, [&](int64_t first, int64_t last) {
        for (int64_t i = first; i < last; ++i) seen[i] = flushes() ? 1 : 0;
      });
    };
    look(before);  // starts the second thread, before anybody asks it to flush
    const ScopedFlushDenormals flush;
    look(inside);
    EXPECT_EQ(before, (std::vector<int>{0, 0}));
    EXPECT_EQ(inside, (std::vector<int>{1, 1}));
  }).join();
}

TEST(ScopedFlushDenormals, ReachesTheTeam) {
  std::thread([] {
    std::vector<int> before(2, -1), inside(2, -1);
    const auto look = [&](std::vector<int>& seen) {
      std::atomic<int> begun{0};
      WaitPoint met;  // so that each of the two threads has one of the two parts
      share_by_team(2, 0, 2, 1, [&](int64_t first, int64_t) {
        begun.fetch_add(1);
        met.notify();
        EXPECT_TRUE(met.wait([&] { return begun.load() == 2; }, std::chrono::nanoseconds(0),
                             WaitPoint::Clock::now() + std::chrono::seconds(60)));
        seen[first] = flushes() ? 1 : 0;
      });
    };
    look(before);  // starts the second thread, before anybody asks it to flush
    {
      const ScopedFlushDenormals flush;
      look(inside);
    }
    EXPECT_EQ(before, (std::vector<int>{0, 0}));
    EXPECT_EQ(inside, (std::vector<int>{1, 1}));
    look(before);
    EXPECT_EQ(before, (std::vector<int>{0, 0}));
  }).join();
}

#endif

}  // namespace
}  // namespace cohort::internal
