#include "cohort/collective/shared_memory/shared_barrier.h"

#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "cohort/core/host/cores.h"

namespace cohort::collective::shared_memory {
namespace {

using internal::own_cores;
using std::chrono::nanoseconds;

// What two tasks share, each on a thread that is pinned to one core.
struct PinnedPair {
  // How long each polls after they have met `barriers` times.
  std::array<nanoseconds, 2> meet_on(const std::array<int, 2>& cores, int barriers) {
    std::array<nanoseconds, 2> polling{};
    std::vector<std::thread> threads;
    for (size_t rank = 0; rank < cores.size(); ++rank) {
      threads.emplace_back([&, rank] {
        cpu_set_t one;
        CPU_ZERO(&one);
        CPU_SET(cores[rank], &one);
        ASSERT_EQ(::sched_setaffinity(0, sizeof one, &one), 0);
        const GroupMember member{.rank = static_cast<int>(rank),
                                 .tasks = {{"worker", 0}, {"worker", 1}}};
        SharedBarrier point({&control, slots.data()}, member, Lifelines(),
                            [](int of_rank) { return std::to_string(of_rank); });
        const Waiting waiting("test", std::chrono::seconds(20));
        for (int i = 0; i < barriers; ++i) point.meet(waiting);
        polling[rank] = point.polling_time();
      });
    }
    for (std::thread& thread : threads) thread.join();
    return polling;
  }

  Control control{};
  std::array<TaskSlot, 2> slots{};
};

std::vector<int> usable_cores() {
  const cpu_set_t all = own_cores();
  std::vector<int> cores;
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(core, &all)) cores.push_back(core);
  }
  return cores;
}

TEST(SharedBarrier, TasksPollWhereEachIsPinnedToACoreOfItsOwn) {
  const std::vector<int> cores = usable_cores();
  const auto polling = PinnedPair().meet_on({cores.front(), cores.back()}, 2);
  for (const nanoseconds time : polling) EXPECT_EQ(time.count() > 0, cores.size() > 1);
}

TEST(SharedBarrier, TasksOnOneCoreSleepAtOnce) {
  const int core = usable_cores().front();
  const auto polling = PinnedPair().meet_on({core, core}, 2);
  for (const nanoseconds time : polling) EXPECT_EQ(time.count(), 0);
}

TEST(SharedBarrier, NobodyPollsBeforeAllHaveSaidWhereTheyRun) {
  const std::vector<int> cores = usable_cores();
  const auto polling = PinnedPair().meet_on({cores.front(), cores.back()}, 0);
  for (const nanoseconds time : polling) EXPECT_EQ(time.count(), 0);
}

}  // namespace
}  // namespace cohort::collective::shared_memory
