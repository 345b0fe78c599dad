// A program that schedules faster than its workers run, on an in-process cluster.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <thread>

#include "cohort/parameter_server/cluster_coordinator.h"
#include "cohort/parameter_server/parameter_server_strategy.h"
#include "cohort/parameter_server/testing_cluster.h"
#include "cohort/parameter_server/testing_gate.h"

namespace cohort::distribute {
namespace {

using std::chrono::seconds;
using Clock = std::chrono::steady_clock;

TEST(LimitedQueue, HoldsTheProgramBackAndLetsItJoin) {
  constexpr int kQueued = 2, kWindow = 1, kClosures = 200;
  TestingCluster cluster(1, 1);
  const ParameterServerStrategy strategy(cluster.resolver());
  Gate gate;
  std::atomic<int> begun{0};
  const auto hold = strategy.function("hold", [&] {
    if (++begun == 1) gate.pass();
  });
  const coordinator::ClusterCoordinator coordinator(strategy, {.window = kWindow,
                                                               .max_queued = kQueued,
                                                               .closure_timeout = seconds(10),
                                                               .max_recovery = seconds(10)});
  coordinator.schedule(hold);
  ASSERT_TRUE(gate.wait_for(1));
  std::atomic<int> scheduled{1};
  auto program = std::async(std::launch::async, [&] {
    int most_waiting = 0;
    while (scheduled < kClosures) {
      coordinator.schedule(hold);  // where the queue is full until a worker has taken one
      most_waiting = std::max(most_waiting, ++scheduled - begun);
    }
    return most_waiting;
  });
  const std::shared_ptr<void> lets_it_end(nullptr, [&](void*) { gate.open(); });
  const auto give_up = Clock::now() + seconds(20);
  while (scheduled < 1 + kQueued && Clock::now() < give_up) std::this_thread::yield();
  EXPECT_EQ(scheduled, 1 + kQueued);
  EXPECT_EQ(begun, 1);
  gate.open();
  const int most_waiting = program.get();
  coordinator.join(seconds(20));
  EXPECT_EQ(begun, kClosures);
  EXPECT_LE(most_waiting, kQueued + kWindow);
  EXPECT_TRUE(coordinator.done());
}

}  // namespace
}  // namespace cohort::distribute
