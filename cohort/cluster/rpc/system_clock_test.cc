#include "cohort/cluster/rpc/system_clock.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <memory>
#include <vector>

namespace cohort::internal::rpc {
namespace {

using namespace std::chrono_literals;

TEST(SystemClockTest, CallsInOrderOfTime) {
  SystemClock clock;
  std::vector<int> calls;
  std::promise<void> done;
  const auto start = clock.now();
  clock.call_at(start + 20ms, [&] {
    calls.push_back(2);
    done.set_value();
  });
  clock.call_at(start + 10ms, [&] { calls.push_back(1); });
  clock.call_at(start - 1s, [&] { calls.push_back(0); });
  done.get_future().get();
  EXPECT_EQ(calls, (std::vector{0, 1, 2}));
  EXPECT_GE(clock.now(), start + 20ms);
}

TEST(SystemClockTest, ACancelledTimerDoesNotRun) {
  SystemClock clock;
  std::atomic<bool> ran = false;
  const auto timer = clock.call_at(clock.now() + 5ms, [&] { ran = true; });
  clock.cancel(timer);
  clock.cancel(timer);
  std::promise<void> later;
  clock.call_at(clock.now() + 10ms, [&] { later.set_value(); });
  later.get_future().get();
  EXPECT_FALSE(ran);
}

TEST(SystemClockTest, CancelWaitsForAFunctionThatRuns) {
  SystemClock clock;
  std::promise<void> began;
  std::promise<void> may_end;
  std::atomic<bool> ended = false;
  const auto timer = clock.call_at(clock.now(), [&] {
    began.set_value();
    may_end.get_future().get();
    ended = true;
  });
  began.get_future().get();
  std::thread releaser([&] { may_end.set_value(); });
  clock.cancel(timer);
  EXPECT_TRUE(ended);
  releaser.join();
}

TEST(SystemClockTest, AFunctionMayEndItsClock) {
  auto clock = std::make_unique<SystemClock>();
  std::promise<void> ended;
  std::atomic<bool> ran = false;
  clock->call_at(clock->now() + 1h, [&] { ran = true; });
  clock->call_at(clock->now(), [&] {
    clock.reset();
    ended.set_value();
  });
  ended.get_future().get();
  EXPECT_FALSE(ran);
}

TEST(SystemClockTest, AFunctionMaySetAndCancelTimers) {
  SystemClock clock;
  std::promise<void> done;
  std::promise<Clock::TimerId> own;
  own.set_value(clock.call_at(clock.now() + 5ms, [&] {
    clock.cancel(own.get_future().get());
    clock.call_at(clock.now(), [&] { done.set_value(); });
  }));
  done.get_future().get();
}

}  // namespace
}  // namespace cohort::internal::rpc
