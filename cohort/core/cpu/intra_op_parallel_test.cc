#include "cohort/core/cpu/intra_op_parallel.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "cohort/core/cpu/intra_op_threads.h"
#include "cohort/core/testing_fork.h"
#include "cohort/core/threads/wait_point.h"

namespace cohort::internal {
namespace {

std::vector<int> visits(int64_t count, int64_t grain) {
  std::vector<std::atomic<int>> seen(static_cast<size_t>(count));
  intra_op_parallel_for(0, count, grain, [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) seen[static_cast<size_t>(i)].fetch_add(1);
  });
  return {seen.begin(), seen.end()};
}

TEST(IntraOpParallel, CallsBodyForEachIndexOnce) {
  for (const int threads : {1, 2, 3, 8}) {
    const ScopedIntraOpThreads scoped(threads);
    for (const int64_t count : {0, 1, 2, 7, 100, 1000}) {
      for (const int64_t grain : {1, 3, 50, 5000}) {
        EXPECT_EQ(visits(count, grain), std::vector<int>(static_cast<size_t>(count), 1))
            << threads << " threads, " << count << " by " << grain;
      }
    }
  }
}

int number_of_parts() {
  std::atomic<int> parts{0};
  intra_op_parallel_for(0, 8, 1, [&](int64_t, int64_t) { parts.fetch_add(1); });
  return parts.load();
}

// OpenMP's two threads have equal parts; those of the team are smaller.
TEST(IntraOpParallel, AfterALongWaitTheTeamTakesOver) {
  const ScopedIntraOpThreads two(2);
  const std::thread::id caller = std::this_thread::get_id();
  // It does for a tenth of a second, which may pass before the next call on a busy machine.
  for (int attempt = 0; attempt < 100; ++attempt) {
    WaitPoint nothing;
    intra_op_parallel_for(0, 2, 1, [&](int64_t, int64_t) {
      if (std::this_thread::get_id() == caller) return;
      nothing.wait([] { return false; }, std::chrono::nanoseconds(0),
                   WaitPoint::Clock::now() + std::chrono::milliseconds(5));
    });
    if (number_of_parts() == 8) return;
  }
  FAIL() << "OpenMP's threads, which come late, are used again and again";
}

TEST(IntraOpParallel, WithinBodyTheCallerDoesAll) {
  const ScopedIntraOpThreads four(4);
  intra_op_parallel_for(0, 64, 1, [&](int64_t, int64_t) {
    const std::thread::id self = std::this_thread::get_id();
    intra_op_parallel_for(0, 10, 1,
                          [&](int64_t, int64_t) { EXPECT_EQ(std::this_thread::get_id(), self); });
  });
  EXPECT_EQ(intra_op_threads(), 4);
}

TEST(IntraOpParallel, ThrowsWhatBodyThrowsAndWorksAgain) {
  const ScopedIntraOpThreads two(2);
  for (int round = 0; round < 100; ++round) {
    try {
      intra_op_parallel_for(0, 8, 1, [&](int64_t first, int64_t last) {
        if (first <= 3 && 3 < last) throw std::runtime_error("part 3");
      });
      ADD_FAILURE() << "did not throw";
    } catch (const std::runtime_error& error) {
      EXPECT_STREQ(error.what(), "part 3");
    }
    EXPECT_EQ(intra_op_threads(), 2);
    EXPECT_EQ(visits(16, 1), std::vector<int>(16, 1));
  }
}

TEST(IntraOpParallel, InAChildOfForkTheCallerDoesAll) {
  const ScopedIntraOpThreads two(2);
  EXPECT_EQ(visits(8, 1), std::vector<int>(8, 1));
  EXPECT_EQ(in_forked_child([] {
              return visits(8, 1) == std::vector<int>(8, 1) ? std::string("all") : "others";
            }),
            "all");
}

}  // namespace
}  // namespace cohort::internal
