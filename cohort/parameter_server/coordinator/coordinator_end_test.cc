// What becomes of what workers still run when a coordinator ends, and of the objects to which it
// refers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <thread>
#include <vector>

#include "cohort/core/error.h"
#include "cohort/core/testing_errors.h"
#include "cohort/core/testing_time_limit.h"
#include "cohort/data/dataset.h"
#include "cohort/distribute/input/distributed_iterator.h"
#include "cohort/parameter_server/closures/closure_message.h"
#include "cohort/parameter_server/cluster_coordinator.h"
#include "cohort/parameter_server/coordinator/testing_counts.h"
#include "cohort/parameter_server/parameter_server_core.h"
#include "cohort/parameter_server/parameter_server_strategy.h"
#include "cohort/parameter_server/testing_cluster.h"
#include "cohort/parameter_server/testing_gate.h"

namespace cohort::distribute {
namespace {

using coordinator::ClusterCoordinator;
using coordinator::ClusterCoordinatorOptions;
using coordinator::PSUnavailableError;
using coordinator::RemoteValue;
using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::AllOf;
using ::testing::HasSubstr;
using Clock = std::chrono::steady_clock;

const ClusterCoordinatorOptions kWaitsForNothing{.end_timeout = milliseconds(0)};

// An object of a program, to which functions refer that run on workers.
class OfProgram {
 public:
  // At the function's end: it waits until the program lets it go on, and notes whether the object
  // has ended. It would within the time, if nobody waited for the function.
  void use() {
    constexpr milliseconds kEndsWithin{300};
    gate_.pass();
    if (ended_.wait_for(kEndsWithin) == std::future_status::ready) ++used_too_late_;
    ++used_;
  }
  bool wait_for_users(int users) { return gate_.wait_for(users); }
  // What lives as long as the object, whose users go on when the program comes to its end.
  std::shared_ptr<void> scope() {
    return {nullptr, [this](void*) { end_.set_value(); }};
  }
  void let_go_on() { gate_.open(); }
  int used() const { return used_; }
  int used_too_late() const { return used_too_late_; }

 private:
  Gate gate_;
  std::promise<void> end_;
  const std::shared_future<void> ended_ = end_.get_future().share();
  std::atomic<int> used_{0}, used_too_late_{0};
};

TEST(CoordinatorEnd, FunctionsEndBeforeTheObjectsToWhichTheyRefer) {
  for (const bool is_named : {false, true}) {
    OfProgram object;
    TestingCluster cluster(2, 2);
    {
      const ParameterServerStrategy strategy(cluster.resolver());
      const auto scope = object.scope();
      const auto named = strategy.function("named", [&] { object.use(); });
      const ClusterCoordinator coordinator(strategy, {.window = 1});
      for (int i = 0; i < 4; ++i) {
        is_named ? coordinator.schedule(named) : coordinator.schedule([&] { object.use(); });
      }
      ASSERT_TRUE(object.wait_for_users(2));
      cluster.stop("ps", 1);
      EXPECT_THROW(coordinator.join(), PSUnavailableError);
      object.let_go_on();
    }
    EXPECT_EQ(object.used(), 2);
    EXPECT_EQ(object.used_too_late(), 0);
  }
}

// Its threads read ahead.
TEST(CoordinatorEnd, InputsEndBeforeTheObjectsToWhichTheirFunctionsRefer) {
  OfProgram object;
  const TestingCluster cluster(1, 1);
  {
    const ParameterServerStrategy strategy(cluster.resolver());
    const auto scope = object.scope();
    const ClusterCoordinator coordinator(strategy);
    const auto iterator = coordinator
                              .create_per_worker_dataset([&] {
                                return data::Dataset::range(8)
                                    .map([&](const Tensor& x) {
                                      if (x.item<int64_t>() == 1) object.use();
                                      return x;
                                    })
                                    .prefetch(1);
                              })
                              .iterator();
    coordinator.schedule([](DistributedIterator& it) { it.get_next(); }, iterator);
    ASSERT_TRUE(object.wait_for_users(1));
    object.let_go_on();
  }
  EXPECT_EQ(object.used(), 1);
  EXPECT_EQ(object.used_too_late(), 0);
}

TEST(CoordinatorEnd, WhatItHasWaitedForInVainIsNamed) {
  Gate gate;
  const TestingCluster cluster(1, 1);
  const ParameterServerStrategy strategy(cluster.resolver());
  const auto hold = strategy.function("hold", [&] { gate.pass(); });
  std::vector<RemoteValue> values;
  const auto began = Clock::now();
  ::testing::internal::CaptureStderr();
  {
    const ClusterCoordinator coordinator(strategy, kWaitsForNothing);
    for (int i = 0; i < 3; ++i) values.push_back(coordinator.schedule(hold));
    ASSERT_TRUE(gate.wait_for(1));
  }
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              AllOf(HasSubstr("0 s (end_timeout)"), HasSubstr("worker 0 runs 'hold' (for ")));
  // All that was queued and under way is cancelled.
  for (const RemoteValue& value : values) EXPECT_THROW(value.fetch(seconds(1)), CancelledError);
  EXPECT_LT(Clock::now() - began, internal::time_limit(seconds(2)));
  gate.open();
}

TEST(CoordinatorEnd, WhatRunsStillChangesNothing) {
  const TestingCluster cluster(1, 2);
  const ParameterServerStrategy strategy(cluster.resolver());
  Gate gate;
  const TwoCounts counts(strategy, [&] { gate.pass(); });
  const auto later =
      strategy.function("later", [&] { strategy.run([&] { counts.b.assign_add(10); }); });
  {
    const ClusterCoordinator coordinator(strategy, kWaitsForNothing);
    for (int i = 0; i < 2; ++i) coordinator.schedule(counts.step);
    ASSERT_TRUE(gate.wait_for(1));
  }
  counts.a.assign(100);  // as a restore does
  gate.open();
  const ClusterCoordinator coordinator(strategy);
  coordinator.schedule(later)
      .fetch();  // behind the others, whose pushes have been answered by then
  EXPECT_EQ(counts.a.value().item<int64_t>(), 100);
  EXPECT_EQ(counts.b.value().item<int64_t>(), 10);
}

// Until it has answered all that has come before.
void wait_for_worker(const ParameterServerStrategy& strategy) {
  const auto ask = [&] {
    strategy.parameter_server_core()
        ->cluster()
        ->channel({"worker", 0})
        ->call("closures/read_value", encode(internal::MakeInput{}), {.timeout = seconds(20)});
  };
  EXPECT_THROW(ask(), AbortedError);  // it is no coordinator's
}

// Not those of its own program, and not those that a later one has under the same names.
TEST(CoordinatorEnd, FunctionsThatHaveNotBegunDoNot) {
  const TestingCluster cluster(1, 1);
  for (const bool is_program_over : {false, true}) {
    Gate gate;
    std::atomic<int> runs{0}, runs_of_later{0};
    auto program = std::make_unique<ParameterServerStrategy>(cluster.resolver());
    const auto hold = program->function("hold", [&] {
      ++runs;
      gate.pass();
    });
    {
      const ClusterCoordinator coordinator(*program, {.window = 3, .end_timeout = milliseconds(0)});
      for (int i = 0; i < 3; ++i) coordinator.schedule(hold);
      ASSERT_TRUE(gate.wait_for(1));
    }
    if (is_program_over) program.reset();
    const ParameterServerStrategy later(cluster.resolver());
    later.function("hold", [&] { ++runs_of_later; });
    gate.open();
    wait_for_worker(later);
    EXPECT_EQ(runs, 1);
    EXPECT_EQ(runs_of_later, 0);
  }
}

// It ends when that has run, on a thread of the library's.
TEST(CoordinatorEnd, AFunctionMayHoldTheLastHandle) {
  const TestingCluster cluster(1, 1);
  const ParameterServerStrategy strategy(cluster.resolver());
  Gate gate;
  auto coordinator = std::make_unique<ClusterCoordinator>(strategy);
  coordinator->schedule([held = *coordinator, &gate] { gate.pass(); });
  ASSERT_TRUE(gate.wait_for(1));
  coordinator.reset();
  gate.open();
  const auto give_up = Clock::now() + seconds(20);
  const auto has_ended = [&] {
    return strategy.parameter_server_core()->leader()->coordinator() == nullptr;
  };
  while (!has_ended() && Clock::now() < give_up) std::this_thread::yield();
  EXPECT_TRUE(has_ended());
  const ClusterCoordinator next(strategy);
  EXPECT_EQ(next.schedule([] { return 1; }).fetch(seconds(20)).tensor().item<int>(), 1);
}

}  // namespace
}  // namespace cohort::distribute
