// A program that schedules faster than its workers run, on an in-process cluster.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>

#include "cohort/parameter_server/coordinator/cluster_coordinator.h"
#include "cohort/parameter_server/parameter_server_strategy.h"
#include "cohort/parameter_server/testing_cluster.h"
#include "cohort/parameter_server/testing_gate.h"

namespace cohort::distribute {
namespace {

TEST(LimitedQueue, HoldsTheProgramBackAndLetsItJoin) {
  constexpr int kQueued = 2, kWindow = 1, kClosures = 200;
  TestingCluster cluster(1, 1);
  const ParameterServerStrategy strategy(cluster.resolver());
  Gate gate;
  std::atomic<int> begun{0};
  const auto hold = strategy.function("hold", [&] {
    if (++begun == 1) gate.pass();
  });
  const coordinator::ClusterCoordinator coordinator(strategy,
                                                    {.window = kWindow, .max_queued = kQueued});
  coordinator.schedule(hold);
  ASSERT_TRUE(gate.wait_for(1));
  std::atomic<int> scheduled{1};
  int most_waiting = 0;
  std::thread program([&] {
    while (scheduled < kClosures) {
      coordinator.schedule(hold);  // where the queue is full until a worker has taken one
      most_waiting = std::max(most_waiting, ++scheduled - begun);
    }
  });
  while (scheduled < 1 + kQueued) std::this_thread::yield();
  EXPECT_EQ(begun, 1);
  gate.open();
  program.join();
  coordinator.join(std::chrono::seconds(20));
  EXPECT_EQ(begun, kClosures);
  EXPECT_LE(most_waiting, kQueued + kWindow);
  EXPECT_TRUE(coordinator.done());
}

}  // namespace
}  // namespace cohort::distribute
