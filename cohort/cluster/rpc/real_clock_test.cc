#include "cohort/cluster/rpc/real_clock.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <vector>

namespace cohort::internal::rpc {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;

TEST(RealClock, CallsTimersInTheOrderOfTheirTimes) {
  RealClock clock;
  std::vector<int> order;
  std::promise<void> done;
  const Clock::Time start = clock.now();
  clock.call_at(start + milliseconds(30), [&] {
    order.push_back(3);
    done.set_value();
  });
  clock.call_at(start + milliseconds(20), [&] { order.push_back(2); });
  clock.call_at(start, [&] { order.push_back(1); });
  done.get_future().wait();
  EXPECT_GE(clock.now(), start + milliseconds(30));
  EXPECT_EQ(order, (std::vector<int>{1, 2, 3}));
}

TEST(RealClock, CancelledTimersDoNotRun) {
  RealClock clock;
  std::atomic<bool> ran = false;
  const Clock::TimerId timer = clock.call_at(clock.now() + hours(1), [&] { ran = true; });
  clock.cancel(timer);
  clock.cancel(timer);
  std::promise<void> later;
  clock.call_at(clock.now(), [&] { later.set_value(); });
  later.get_future().wait();
  EXPECT_FALSE(ran);
}

TEST(RealClock, CancellingWaitsForAFunctionThatRuns) {
  RealClock clock;
  std::promise<void> begun;
  std::promise<void> go_on;
  std::atomic<bool> ended = false;
  const Clock::TimerId timer = clock.call_at(clock.now(), [&] {
    begun.set_value();
    go_on.get_future().wait();
    ended = true;
  });
  begun.get_future().wait();
  auto cancelled = std::async(std::launch::async, [&] {
    clock.cancel(timer);
    return ended.load();
  });
  go_on.set_value();
  EXPECT_TRUE(cancelled.get());
}

TEST(RealClock, AFunctionMayCancelItselfAndSetOthers) {
  RealClock clock;
  std::promise<void> done;
  Clock::TimerId timer = 0;
  std::promise<void> known;
  timer = clock.call_at(clock.now(), [&] {
    known.get_future().wait();
    clock.cancel(timer);
    clock.call_at(clock.now(), [&] { done.set_value(); });
  });
  known.set_value();
  done.get_future().wait();
}

}  // namespace
}  // namespace cohort::internal::rpc
