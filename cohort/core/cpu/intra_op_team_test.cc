#include "cohort/core/cpu/intra_op_team.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <mutex>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "cohort/core/cpu/intra_op_parallel.h"
#include "cohort/core/cpu/intra_op_threads.h"
#include "cohort/core/threads/wait_point.h"

namespace cohort::internal {
namespace {

std::vector<int> visits_by_team(int64_t count, int64_t grain, int threads = 2) {
  std::vector<std::atomic<int>> seen(static_cast<size_t>(count));
  share_by_team(threads, 0, count, grain, [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) seen[static_cast<size_t>(i)].fetch_add(1);
  });
  return {seen.begin(), seen.end()};
}

TEST(IntraOpTeam, CallsBodyForEachIndexOnce) {
  for (const int threads : {1, 2, 3, 8}) {
    for (const int64_t count : {0, 1, 2, 7, 100, 1000}) {
      for (const int64_t grain : {1, 3, 50, 5000}) {
        EXPECT_EQ(visits_by_team(count, grain, threads),
                  std::vector<int>(static_cast<size_t>(count), 1))
            << threads << " threads, " << count << " by " << grain;
      }
    }
  }
}

TEST(IntraOpTeam, PartsBeginAtTheBeginningAndHaveTheGrain) {
  std::mutex mutex;
  std::vector<std::pair<int64_t, int64_t>> parts;
  share_by_team(2, 10, 31, 5, [&](int64_t first, int64_t last) {
    const std::lock_guard lock(mutex);
    parts.emplace_back(first, last);
  });
  std::sort(parts.begin(), parts.end());
  EXPECT_EQ(parts, (std::vector<std::pair<int64_t, int64_t>>{
                       {10, 15}, {15, 20}, {20, 25}, {25, 30}, {30, 31}}));
}

// Two parts that wait for each other are done on two threads.
TEST(IntraOpTeam, HelpersWorkAtTheSameTime) {
  std::atomic<int> begun{0};
  WaitPoint met;
  share_by_team(2, 0, 2, 1, [&](int64_t, int64_t) {
    begun.fetch_add(1);
    met.notify();
    EXPECT_TRUE(met.wait([&] { return begun.load() == 2; }, std::chrono::nanoseconds(0),
                         WaitPoint::Clock::now() + std::chrono::seconds(60)));
  });
}

// The helper is held up in its part; the caller does all the others meanwhile.
TEST(IntraOpTeam, NobodyWaitsForAThreadThatComesLate) {
  const std::thread::id caller = std::this_thread::get_id();
  std::atomic<int> left{8};
  WaitPoint others_done;
  std::atomic<bool> held{false};
  share_by_team(2, 0, 8, 1, [&](int64_t, int64_t) {
    if (std::this_thread::get_id() != caller && !held.exchange(true)) {
      EXPECT_TRUE(others_done.wait([&] { return left.load() == 1; }, std::chrono::nanoseconds(0),
                                   WaitPoint::Clock::now() + std::chrono::seconds(60)));
    }
    left.fetch_sub(1);
    others_done.notify();
  });
  EXPECT_EQ(left.load(), 0);
}

// A helper that is kept in a signal's handler, as one whose core does something else.
std::atomic<bool> helper_is_kept{false};
std::atomic<bool> helper_may_go{false};
void keep_helper(int) {
  helper_is_kept = true;
  while (!helper_may_go) ::sched_yield();
}

pid_t id_of_helper() {
  const std::thread::id caller = std::this_thread::get_id();
  std::atomic<pid_t> helper{0};
  WaitPoint begun;
  share_by_team(2, 0, 2, 1, [&](int64_t, int64_t) {
    if (std::this_thread::get_id() != caller) helper = ::gettid();
    begun.notify();
    EXPECT_TRUE(begun.wait([&] { return helper != 0; }, std::chrono::nanoseconds(0),
                           WaitPoint::Clock::now() + std::chrono::seconds(60)));
  });
  return helper;
}

// Three loops one after another: none waits until a helper that was called for the last has come.
void run_loops_without_helper() {
  const pid_t helper = id_of_helper();
  helper_is_kept = false;
  helper_may_go = false;
  const auto previous = std::signal(SIGUSR1, keep_helper);
  ASSERT_EQ(::syscall(SYS_tgkill, ::getpid(), helper, SIGUSR1), 0);
  const auto give_up = WaitPoint::Clock::now() + std::chrono::seconds(60);
  while (!helper_is_kept && WaitPoint::Clock::now() < give_up) std::this_thread::yield();
  ASSERT_TRUE(helper_is_kept);
  for (int round = 0; round < 3; ++round) {
    EXPECT_EQ(visits_by_team(64, 1), std::vector<int>(64, 1));
  }
  helper_may_go = true;
  EXPECT_EQ(id_of_helper(), helper);  // it comes again
  std::signal(SIGUSR1, previous);
}

TEST(IntraOpTeam, ALoopWhoseHelpersNeverComeEndsWithoutThem) {
  std::thread(run_loops_without_helper).join();  // a new caller, who has no other helpers
}

TEST(IntraOpTeam, WithinBodyOperationsHaveOneThread) {
  const ScopedIntraOpThreads four(4);
  std::mutex mutex;
  std::set<int> counts;
  share_by_team(4, 0, 64, 1, [&](int64_t, int64_t) {
    int inner = 0;
    intra_op_parallel_for(0, 10, 1, [&](int64_t, int64_t) { ++inner; });
    const std::lock_guard lock(mutex);
    counts.insert(intra_op_threads());
    EXPECT_EQ(inner, 1);
  });
  EXPECT_EQ(counts, std::set<int>{1});
  EXPECT_EQ(intra_op_threads(), 4);
}

TEST(IntraOpTeam, ThrowsWhatBodyThrowsAndWorksAgain) {
  for (int round = 0; round < 100; ++round) {
    try {
      share_by_team(2, 0, 8, 1, [&](int64_t first, int64_t last) {
        if (first <= 3 && 3 < last) throw std::runtime_error("part 3");
      });
      ADD_FAILURE() << "did not throw";
    } catch (const std::runtime_error& error) {
      EXPECT_STREQ(error.what(), "part 3");
    }
    EXPECT_EQ(visits_by_team(16, 1), std::vector<int>(16, 1));
  }
}

TEST(IntraOpTeam, CallersHaveHelpersOfTheirOwn) {
  std::vector<std::thread> callers;
  for (int i = 0; i < 4; ++i) {
    callers.emplace_back([] {
      for (int round = 0; round < 200; ++round) {
        EXPECT_EQ(visits_by_team(8, 1), std::vector<int>(8, 1));
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
}

}  // namespace
}  // namespace cohort::internal
