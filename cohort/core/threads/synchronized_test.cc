#include "cohort/core/threads/synchronized.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <thread>

namespace cohort::internal {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

TEST(Synchronized, ChangesWakeThoseWhoWait) {
  Synchronized<int> value(1);
  std::thread waits([&] {
    auto now = value.change();
    now.wait([&] { return *now == 2; });
    *now = 3;
  });
  *value.change() = 2;
  auto now = value.lock();
  EXPECT_TRUE(now.wait_until(Clock::now() + hours(1), [&] { return *now == 3; }));
  waits.join();
}

TEST(Synchronized, AWaitTellsOthersOfTheChangeBeforeIt) {
  Synchronized<int> value(0);
  std::thread answers([&] {
    auto now = value.change();
    now.wait([&] { return *now == 1; });
    *now = 2;
  });
  auto now = value.change();
  *now = 1;
  EXPECT_TRUE(now.wait_until(Clock::now() + hours(1), [&] { return *now == 2; }));
  answers.join();
}

TEST(Synchronized, WhoOnlyHasItWakesOthersOnDemand) {
  Synchronized<int> value(0);
  std::thread waits([&] {
    auto now = value.lock();
    now.wait([&] { return *now == 1; });
  });
  {
    auto now = value.lock();
    *now = 1;
    now.wake();
  }
  waits.join();
}

TEST(Synchronized, WaitsEndAtTheDeadline) {
  const Synchronized<int> value(1);
  const auto deadline = Clock::now() + milliseconds(5);
  auto now = value.lock();
  EXPECT_FALSE(now.wait_until(deadline, [&] { return *now == 2; }));
  EXPECT_GE(Clock::now(), deadline);
}

TEST(Synchronized, OthersHaveTheValueDuringAWaitOnly) {
  Synchronized<std::map<std::string, int>> counts;
  std::thread other;
  {
    auto now = counts.lock();
    other = std::thread([&] { ++counts.change()->operator[]("other"); });
    EXPECT_EQ(now->size(), 0u);
    now.wait([&] { return now->contains("other"); });
    EXPECT_EQ(now->at("other"), 1);
  }
  other.join();
}

TEST(Synchronized, WhoWaitsMayEndIt) {
  for (int i = 0; i < 100; ++i) {
    auto value = std::make_unique<Synchronized<bool>>(false);
    std::thread sets([&own = *value] { *own.change() = true; });
    {
      auto now = value->lock();
      now.wait([&] { return *now; });
    }
    value.reset();
    sets.join();
  }
}

}  // namespace
}  // namespace cohort::internal
