// What a coordinator does when tasks of an in-process cluster are lost.
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "cohort/cluster/channel_pool.h"
#include "cohort/cluster/rpc/error_detail.h"
#include "cohort/core/error.h"
#include "cohort/core/files/simulated_file_system.h"
#include "cohort/core/testing_errors.h"
#include "cohort/core/testing_time_limit.h"
#include "cohort/parameter_server/cluster_coordinator.h"
#include "cohort/parameter_server/coordinator/testing_counts.h"
#include "cohort/parameter_server/leadership/leadership_message.h"
#include "cohort/parameter_server/parameter_server_core.h"
#include "cohort/parameter_server/parameter_server_strategy.h"
#include "cohort/parameter_server/testing_cluster.h"
#include "cohort/parameter_server/testing_gate.h"
#include "cohort/train/checkpoint.h"

namespace cohort::distribute {
namespace {

using coordinator::ClusterCoordinator;
using coordinator::PSUnavailableError;
using coordinator::RemoteValue;
using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::AllOf;
using ::testing::HasSubstr;
using Clock = std::chrono::steady_clock;

TEST(CoordinatorFaults, ALostPsTaskIsNamedWithItsAddressAndTheLastCheckpoint) {
  TestingCluster cluster(2, 2);
  const ParameterServerStrategy strategy(cluster.resolver());
  const Variable a = make_count(strategy, "a"), b = make_count(strategy, "b");
  Gate gate;
  const auto hold = strategy.function("hold", [&] { gate.pass(); });
  const ClusterCoordinator coordinator(strategy, {.window = 1});
  internal::SimulatedFileSystem files;
  const train::Checkpoint checkpoint({{"a", a}, {"b", b}});
  internal::use_file_system(checkpoint, files);
  const std::string path = checkpoint.save("dir/ckpt");

  std::vector<RemoteValue> values;
  for (int i = 0; i < 4; ++i) values.push_back(coordinator.schedule(hold));
  ASSERT_TRUE(gate.wait_for(2));
  const std::string address = cluster.spec().task_address("ps", 1);
  const auto killed = Clock::now();
  cluster.stop("ps", 1);
  const auto names_it = AllOf(HasSubstr("lost /job:ps/task:1 (" + address + ")"), HasSubstr(path));
  EXPECT_THAT(thrown<PSUnavailableError>([&] { coordinator.join(); }), names_it);
  EXPECT_LT(Clock::now() - killed, internal::time_limit(seconds(1)));
  // Each time: nothing can go on without its variables.
  EXPECT_THAT(thrown<UnavailableError>([&] { coordinator.schedule(hold); }), names_it);
  EXPECT_THAT(thrown<UnavailableError>([&] { coordinator.done(); }), names_it);
  // Queued and under way, all end with it, at once.
  for (const RemoteValue& value : values) {
    EXPECT_THAT(thrown<PSUnavailableError>([&] { value.fetch(seconds(1)); }), names_it);
  }
  ASSERT_EQ(coordinator.errors().size(), 1u);
  EXPECT_THAT(coordinator.errors()[0].error, names_it);
  gate.open();
}

// Before the program has a coordinator, which would watch the ps tasks.
TEST(CoordinatorFaults, APsTaskThatIsLostWhileVariablesAreMadeIsALossLikeAnyOther) {
  TestingCluster cluster(1, 2);
  const ParameterServerStrategy strategy(cluster.resolver());
  const Variable a = make_count(strategy, "a"), b = make_count(strategy, "b");
  cluster.stop("ps", 1);
  std::vector<Variable> more;
  EXPECT_THAT(thrown<PSUnavailableError>([&] {
                for (const char* name : {"c", "d"}) more.push_back(make_count(strategy, name));
              }),
              AllOf(HasSubstr("lost /job:ps/task:1"), HasSubstr("Start the program again")));
}

// A program that waits for each function, and calls neither join nor done.
TEST(CoordinatorFaults, ALoopOfScheduleAndFetchGetsTheErrorThatNamesTheLostPsTask) {
  TestingCluster cluster(2, 2);
  const ParameterServerStrategy strategy(cluster.resolver());
  const Variable a = make_count(strategy, "a"), b = make_count(strategy, "b");
  const auto step = strategy.function("step", [&] { strategy.run([&] { b.assign_add(1); }); });
  const ClusterCoordinator coordinator(strategy);
  coordinator.schedule(step).fetch();
  cluster.stop("ps", 1);
  EXPECT_THAT(thrown<UnavailableError>([&] {
                while (true) coordinator.schedule(step).fetch(seconds(20));
              }),
              HasSubstr("lost /job:ps/task:1"));
}

// A ps task that ends answers so; this one has ended for one call only.
TEST(CoordinatorFaults, APsTasksAnswerThatItEndsIsNoErrorOfTheFunction) {
  TestingCluster cluster(1, 1);
  const ParameterServerStrategy strategy(cluster.resolver());
  std::atomic<int> runs{0};
  const auto read = strategy.function("read", [&] {
    if (++runs == 1) throw CancelledError("the server has stopped", "/job:ps/task:0");
    return 3;
  });
  const ClusterCoordinator coordinator(strategy);
  EXPECT_EQ(coordinator.schedule(read).fetch(seconds(20)).tensor().item<int>(), 3);
  coordinator.join();
  EXPECT_EQ(runs, 2);
}

TEST(CoordinatorFaults, AWorkersValueThatAPsTaskFailsForAMomentIsMadeAgain) {
  TestingCluster cluster(1, 1);
  const ParameterServerStrategy strategy(cluster.resolver());
  std::atomic<int> runs{0};
  const auto make = strategy.function("make", [&] {
    if (++runs == 1) {
      std::rethrow_exception(internal::rpc::make_error(Code::kUnavailable, "its connection broke",
                                                       "", {.peer = "/job:ps/task:0"}));
    }
    return 3;
  });
  const auto same = strategy.function("same", [](int64_t value) { return value; });
  const ClusterCoordinator coordinator(strategy);
  const auto value = coordinator.create_per_worker_value(make);
  EXPECT_EQ(coordinator.schedule(same, value).fetch(seconds(20)).tensor().item<int64_t>(), 3);
  coordinator.join();
  EXPECT_EQ(runs, 2);
}

// The first run reaches the ps tasks with all that it assigns, and fails with an error that lets it
// run again.
TEST(CoordinatorFaults, WhatAClosureAssignsOutsideOfStepsCountsOnce) {
  TestingCluster cluster(1, 2);
  const ParameterServerStrategy strategy(cluster.resolver());
  auto scope = strategy.scope();
  const Variable table(at::zeros({4, 1}), {.name = "table"});
  scope.close();
  const Variable a = make_count(strategy, "a"), b = make_count(strategy, "b");
  std::atomic<int> runs{0};
  const auto assign = strategy.function("assign", [&] {
    a.assign_add(1);
    strategy.run([&] { b.assign_add(1); });
    b.assign_add(1);
    table.scatter_add({.values = at::ones({1, 1}), .indices = at::full({1}, 2, int64)});
    if (++runs == 1) throw CancelledError("the server has stopped", "/job:ps/task:0");
  });
  const ClusterCoordinator coordinator(strategy);
  for (int i = 0; i < 2; ++i) coordinator.schedule(assign);
  coordinator.join();
  EXPECT_EQ(runs, 3);
  EXPECT_EQ(a.value().item<int64_t>(), 2);
  EXPECT_EQ(b.value().item<int64_t>(), 4);
  EXPECT_EQ(table.value()[2][0].item<float>(), 2);
}

// The second run leaves out what the first one has done.
TEST(CoordinatorFaults, AStepCountsAlsoWhereTheClosureHasAssignedLessBeforeIt) {
  TestingCluster cluster(1, 1);
  const ParameterServerStrategy strategy(cluster.resolver());
  const Variable is_set = make_count(strategy, "is_set"), count = make_count(strategy);
  const auto set_and_count = strategy.function("set_and_count", [&] {
    if (is_set.value().item<int64_t>() == 0) {
      is_set.assign(1);
      throw CancelledError("the server has stopped", "/job:ps/task:0");
    }
    strategy.run([&] { count.assign_add(1); });
  });
  const ClusterCoordinator coordinator(strategy);
  coordinator.schedule(set_and_count);
  coordinator.join();
  EXPECT_EQ(count.value().item<int64_t>(), 1);
}

TEST(CoordinatorFaults, APsTaskThatWasStartedAgainIsLost) {
  TestingCluster cluster(1, 1);
  const ParameterServerStrategy strategy(cluster.resolver());
  const Variable count = make_count(strategy);
  const auto step = strategy.function("step", [&] { strategy.run([&] { count.assign_add(1); }); });
  const ClusterCoordinator coordinator(strategy, {.ps_grace = seconds(20)});
  coordinator.schedule(step);
  coordinator.join();
  cluster.stop("ps", 0);
  cluster.start("ps", 0);
  EXPECT_THAT(thrown<UnavailableError>([&] {
                while (true) {
                  coordinator.schedule(step);
                  coordinator.join();
                }
              }),
              AllOf(HasSubstr("/job:ps/task:0 was started again"), HasSubstr("no checkpoint")));
  EXPECT_THAT(thrown<UnavailableError>([&] { count.value(); }), HasSubstr("/job:ps/task:0"));
}

// TensorFlow's testPSFailureWhileRecoveryFromWorkerFailure. In either order, and with a worker that
// comes back to a cluster without its ps task.
TEST(CoordinatorFaults, AWorkerAndAPsTaskLostTogetherAreALostPsTask) {
  const std::vector<std::vector<TaskId>> orders = {{{"worker", 1}, {"ps", 1}},
                                                   {{"ps", 1}, {"worker", 1}}};
  for (const auto& order : orders) {
    for (const bool comes_back : {false, true}) {
      TestingCluster cluster(2, 2);
      const ParameterServerStrategy strategy(cluster.resolver());
      const TwoCounts counts(strategy);
      const ClusterCoordinator coordinator(strategy, {.ps_grace = milliseconds(50)});
      coordinator.schedule(counts.step).fetch();
      for (const TaskId& task : order) cluster.stop(task.job, task.index);
      if (comes_back) cluster.start("worker", 1);
      EXPECT_THAT(thrown<PSUnavailableError>([&] {
                    for (int i = 0; i < 20; ++i) coordinator.schedule(counts.step);
                    coordinator.join(seconds(20));
                  }),
                  HasSubstr("lost /job:ps/task:1"));
    }
  }
}

// TensorFlow's testFetchFromPSAfterWorkerFailure.
TEST(CoordinatorFaults, VariablesAreReadWhileAWorkerDiesAndComesBack) {
  TestingCluster cluster(2, 1);
  const ParameterServerStrategy strategy(cluster.resolver());
  const Variable count = make_count(strategy);
  const auto step = strategy.function("step", [&] { strategy.run([&] { count.assign_add(1); }); });
  const ClusterCoordinator coordinator(strategy);
  std::atomic<bool> is_over{false};
  auto reader = std::async(std::launch::async, [&] {
    int64_t last = 0;
    while (!is_over) {
      const auto now = count.value().item<int64_t>();
      EXPECT_GE(now, last);
      last = now;
    }
  });
  const std::shared_ptr<void> ends_reader(nullptr, [&](void*) { is_over = true; });
  int steps = 0;
  const auto step_until = [&](const auto& condition) {
    const auto give_up = Clock::now() + seconds(20);
    while (!condition() && Clock::now() < give_up) {
      coordinator.schedule(step).fetch(seconds(20));
      ++steps;
    }
    EXPECT_TRUE(condition());
  };
  const auto is_alive = [&] { return coordinator.workers()[1].is_alive; };
  step_until(is_alive);
  cluster.stop("worker", 1);
  step_until([&] { return !is_alive(); });
  cluster.start("worker", 1);
  step_until(is_alive);
  is_over = true;
  reader.get();
  EXPECT_EQ(count.value().item<int64_t>(), steps);
}

TEST(CoordinatorFaults, ALaterCoordinatorFencesTheOldOne) {
  TestingCluster cluster(1, 2);
  const ParameterServerStrategy strategy(cluster.resolver());
  const Variable count = make_count(strategy);
  const auto step = strategy.function("step", [&] { strategy.run([&] { count.assign_add(1); }); });
  const ClusterCoordinator coordinator(strategy);
  coordinator.schedule(step);
  coordinator.join();

  // Another process's coordinator, as far as the tasks can tell.
  const int64_t later = strategy.parameter_server_core()->cluster()->generation() + 1;
  const std::string generation = internal::str("generation ", later);
  internal::ChannelPool other(std::make_shared<internal::rpc::Identity>(TaskId{"chief", 0}, 4711),
                              internal::security::Security::load(Credentials(), TaskId{"chief", 0}),
                              internal::rpc::TransportSettings());
  for (const TaskId& task : {TaskId{"ps", 0}, TaskId{"ps", 1}, TaskId{"worker", 0}}) {
    other.channel(task, cluster.spec().task_address(task.job, task.index))
        ->call("leadership/take", internal::encode(internal::LeaderClaim{.generation = later}),
               {.timeout = seconds(10)});
  }
  EXPECT_THAT(thrown<AbortedError>([&] {
                while (true) {
                  coordinator.schedule(step);
                  coordinator.join();
                }
              }),
              HasSubstr(internal::str("fenced, ", generation)));
  EXPECT_THAT(thrown<AbortedError>([&] { coordinator.done(); }), HasSubstr(generation));
  EXPECT_THAT(thrown<AbortedError>([&] { count.assign(1000); }), HasSubstr(generation));
}

// A worker that has obeyed a coordinator on a machine whose clock is ahead.
TEST(CoordinatorFaults, AWorkerThatObeysAnotherCoordinatorIsNamed) {
  TestingCluster cluster(1, 1);
  const ParameterServerStrategy strategy(cluster.resolver());
  const Variable count = make_count(strategy);
  const auto step = strategy.function("step", [&] { strategy.run([&] { count.assign_add(1); }); });
  const auto core = strategy.parameter_server_core();
  core->cluster()
      ->channel({"worker", 0})
      ->call("leadership/take",
             internal::encode(
                 internal::LeaderClaim{.generation = core->cluster()->generation() + 36'000}),
             {.timeout = seconds(10)});
  const ClusterCoordinator coordinator(strategy);
  EXPECT_THAT(thrown<AbortedError>([&] { coordinator.schedule(step).fetch(seconds(20)); }),
              AllOf(HasSubstr("another coordinator has taken worker 0: fenced, generation"),
                    HasSubstr("start the worker again, too")));
}

TEST(CoordinatorFaults, WhenAllWorkersAreGivenUpTheyAreNamed) {
  TestingCluster cluster(2, 1);
  const ParameterServerStrategy strategy(cluster.resolver());
  const auto step = strategy.function("step", [] { return 1; });
  const ClusterCoordinator coordinator(strategy, {.max_recovery = milliseconds(300)});
  coordinator.schedule(step);
  coordinator.join();
  cluster.stop("worker", 1);
  cluster.stop("worker", 0);
  const auto names_them = AllOf(HasSubstr("no worker is left"), HasSubstr("/job:worker/task:0"),
                                HasSubstr("/job:worker/task:1"));
  // By whichever of the two calls: the workers may be given up before anything is queued.
  EXPECT_THAT(thrown<UnavailableError>([&] { coordinator.schedule(step).fetch(seconds(20)); }),
              names_them);
  try {
    coordinator.join(seconds(20));
    ADD_FAILURE() << "join returned";
  } catch (const PSUnavailableError&) {
    ADD_FAILURE() << "the ps task is there";
  } catch (const UnavailableError& error) {
    EXPECT_THAT(error.what(), names_them);
  }
}

// The worker that is lost stands first in the line of those that have room, and does not come back.
TEST(CoordinatorFaults, ALostWorkersClosureGoesToOneThatIsThere) {
  TestingCluster cluster(2, 1);
  const ParameterServerStrategy strategy(cluster.resolver());
  Gate gate;
  std::atomic<int> holder{-1}, runs{0};
  const auto hold = strategy.function("hold", [&] {
    if (++runs > 1) return;
    holder = coordinator::get_current_worker_index();
    gate.pass();
  });
  const auto quick = strategy.function("quick", [] {});
  const ClusterCoordinator coordinator(strategy, {.window = 2});
  while (coordinator.workers()[0].done == 0 || coordinator.workers()[1].done == 0) {
    coordinator.schedule(quick).fetch();
  }
  coordinator.join();
  coordinator.schedule(hold);
  ASSERT_TRUE(gate.wait_for(1));
  const int lost = holder;
  coordinator.schedule(quick).fetch();  // on the other one
  std::thread opener([&] {              // not before the other one has run it
    const auto give_up = Clock::now() + seconds(10);
    while (runs < 2 && Clock::now() < give_up) std::this_thread::yield();
    gate.open();
  });
  cluster.stop("worker", lost);
  opener.join();
  EXPECT_EQ(runs, 2);
  coordinator.join(seconds(20));
}

// Each closure adds 1 on every ps task; whatever a checkpoint holds, its counters agree.
TEST(CoordinatorFaults, ACheckpointHoldsEachClosureOnAllPsTasksOrOnNone) {
  TestingCluster cluster(3, 2);
  const ParameterServerStrategy strategy(cluster.resolver());
  const TwoCounts counts(strategy);
  const ClusterCoordinator coordinator(strategy, {.window = 4});
  internal::SimulatedFileSystem files;
  const train::Checkpoint checkpoint({{"a", counts.a}, {"b", counts.b}});
  internal::use_file_system(checkpoint, files);
  constexpr int kRounds = 6, kClosures = 40;
  std::vector<std::string> paths;
  for (int round = 0; round < kRounds; ++round) {
    for (int i = 0; i < kClosures; ++i) coordinator.schedule(counts.step);
    if (round == 2) cluster.stop("worker", 1);
    if (round == 4) cluster.stop("worker", 2);
    paths.push_back(checkpoint.save("dir/ckpt"));
  }
  coordinator.join();
  EXPECT_EQ(counts.a.value().item<int64_t>(), kRounds * kClosures);
  EXPECT_EQ(counts.b.value().item<int64_t>(), kRounds * kClosures);
  int64_t before = -1;
  for (const std::string& path : paths) {
    checkpoint.restore(path).assert_consumed();
    const auto in_a = counts.a.value().item<int64_t>();
    EXPECT_EQ(in_a, counts.b.value().item<int64_t>()) << path;
    EXPECT_GE(in_a, before);
    before = in_a;
  }
}

TEST(CoordinatorFaults, WhatAClosureChangesAfterItsTimeIsRefused) {
  TestingCluster cluster(1, 2);
  const ParameterServerStrategy strategy(cluster.resolver());
  Gate gate;
  const TwoCounts slow(strategy, [&] { gate.pass(); });
  const auto quick =
      strategy.function("quick", [&] { strategy.run([&] { slow.b.assign_add(10); }); });
  {
    const ClusterCoordinator coordinator(
        strategy, {.closure_timeout = milliseconds(500), .end_timeout = milliseconds(0)});
    coordinator.schedule(slow.step);
    EXPECT_THAT(thrown<DeadlineExceededError>([&] { coordinator.join(); }), HasSubstr("'step'"));
    EXPECT_FALSE(coordinator.workers()[0].is_alive);  // it still runs it
  }
  ASSERT_TRUE(gate.wait_for(1));
  gate.open();
  const ClusterCoordinator coordinator(strategy);
  coordinator.schedule(quick).fetch();  // behind the slow one, whose push has been answered by then
  EXPECT_EQ(slow.a.value().item<int64_t>(), 0);
  EXPECT_EQ(slow.b.value().item<int64_t>(), 10);
}

// The coordinator takes worker 0 for lost while a closure is on it: what that closure changes in
// the end is refused, and it runs again.
TEST(CoordinatorFaults, AWorkerThatWasRefusedRunsItsClosureAgainAndItCountsOnce) {
  TestingCluster cluster(1, 2);
  const ParameterServerStrategy strategy(cluster.resolver());
  Gate gate;
  std::atomic<int> runs{0};
  const TwoCounts counts(strategy, [&] {
    if (++runs == 1) gate.pass();
  });
  const ClusterCoordinator coordinator(strategy, {.window = 1});
  coordinator.schedule(counts.step);
  ASSERT_TRUE(gate.wait_for(1));
  const auto core = strategy.parameter_server_core();
  for (int ps = 0; ps < 2; ++ps) {
    core->cluster()
        ->channel({"ps", ps})
        ->call("leadership/refuse_worker",
               internal::encode(internal::RefuseWorker{
                   .generation = core->cluster()->generation(),
                   .worker = 0,
                   .below = internal::session_id(core->cluster()->generation(), 2)}),
               {.timeout = seconds(10)});
  }
  gate.open();
  coordinator.join();
  EXPECT_EQ(runs, 2);
  EXPECT_EQ(counts.a.value().item<int64_t>(), 1);
  EXPECT_EQ(counts.b.value().item<int64_t>(), 1);
  EXPECT_EQ(coordinator.workers()[0].retried, 1);
}

}  // namespace
}  // namespace cohort::distribute
