// One strategy that several tasks of a process use, as the servers of an in-process cluster do.
#include <ATen/ops/equal.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <thread>

#include "cohort/collective/testing_socket_communicator.h"
#include "cohort/core/program/task.h"
#include "cohort/distribute/gradients/gradient_exchange.h"
#include "cohort/distribute/strategies/local_strategy.h"
#include "cohort/distribute/strategies/replica_context.h"
#include "cohort/distribute/strategies/strategy.h"
#include "cohort/distribute/testing_devices.h"
#include "cohort/distribute/testing_errors.h"
#include "cohort/distribute/testing_numbers.h"
#include "cohort/ops/random.h"
#include "cohort/optim/adam.h"

namespace cohort::distribute {
namespace {

using internal::ScopedTask;
using internal::Task;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

const Task& worker(int index) { return Task::named("worker", index); }

// An event of one thread that another waits for. Waiting fails at a deadline.
class Event {
 public:
  void happen() { promise_.set_value(); }
  bool happens() { return future_.wait_for(std::chrono::seconds(20)) == std::future_status::ready; }

 private:
  std::promise<void> promise_;
  std::shared_future<void> future_ = promise_.get_future().share();
};

TEST(SharedStrategy, TasksRunStepsAtTheSameTime) {
  for (const int replicas : {1, 2}) {
    const MirroredStrategy strategy = mirrored(replicas);
    Event in_step[2];
    // Each step ends only when the other has begun.
    const auto program = [&](int index) {
      const ScopedTask as_worker(worker(index));
      strategy.run([&](ReplicaContext& replica) {
        if (replica.replica_id_in_sync_group() == 0) in_step[index].happen();
        EXPECT_TRUE(in_step[1 - index].happens());
      });
    };
    std::thread other(program, 1);
    program(0);
    other.join();
  }
}

TEST(SharedStrategy, OneTaskStillRunsOneStepAtATime) {
  const MirroredStrategy strategy = mirrored(2);
  Event in_step;
  Event refused_other;
  std::thread first([&] {
    const ScopedTask as_worker(worker(3));
    strategy.run([&](ReplicaContext& replica) {
      if (replica.replica_id_in_sync_group() != 0) return;
      in_step.happen();
      EXPECT_TRUE(refused_other.happens());
    });
  });
  EXPECT_TRUE(in_step.happens());
  {
    const ScopedTask as_worker(worker(3));
    EXPECT_THAT(thrown<FailedPreconditionError>([&] { strategy.run([] {}); }),
                HasSubstr("another thread of /job:worker/task:3"));
  }
  strategy.run([] {});  // the maker's own task is free
  refused_other.happen();
  first.join();
}

TEST(SharedStrategy, EachTaskNamesTheDevicesAsItsOwn) {
  const MirroredStrategy strategy = mirrored(2);
  const ScopedTask as_worker(worker(1));
  EXPECT_THAT(strategy.extended().worker_devices(),
              ElementsAre("/job:worker/replica:0/task:1/device:CPU:0",
                          "/job:worker/replica:0/task:1/device:CPU:1"));
  const auto devices =
      strategy.run([](ReplicaContext& replica) { return replica.devices().front(); });
  EXPECT_EQ(devices.value(1), "/job:worker/replica:0/task:1/device:CPU:1");
}

TEST(SharedStrategy, ReplicasDrawNumbersOfTheirOwnInEveryTask) {
  const MirroredStrategy strategy = mirrored(2);
  const auto draw = [&] {
    return strategy.run([] { return random::normal({}).item<double>(); }).values();
  };
  const auto draw_as = [&](int index) {
    const ScopedTask as_worker(worker(index));
    return draw();
  };
  for (const uint64_t seed : {5, 6}) {
    random::set_seed(seed);
    const auto own = draw();
    EXPECT_NE(own[0], own[1]);
    EXPECT_EQ(draw_as(0), own);
    const auto others = draw_as(1);
    for (const double number : own) EXPECT_THAT(others, Not(Contains(number)));
    EXPECT_NE(draw_as(1), others);  // each task goes on by itself
    EXPECT_EQ(draw_as(0), draw());
    random::set_seed(seed);
    EXPECT_EQ(draw_as(1), others);
  }
}

TEST(SharedStrategy, AStepThatFailsIsItsTasksOwn) {
  const MirroredStrategy strategy = mirrored(2);
  const ScopedTask as_worker(worker(0));
  EXPECT_THROW(strategy.run([](ReplicaContext& replica) {
    if (replica.replica_id_in_sync_group() == 1) throw DataLossError("lost");
    replica.all_reduce(ReduceOp::SUM, number(1));
  }),
               DataLossError);
  const ScopedTask as_other(worker(1));
  const auto sums = strategy.run(
      [](ReplicaContext& replica) { return replica.all_reduce(ReduceOp::SUM, number(1)); });
  EXPECT_EQ(sums.value(1).item<double>(), 2);
}

// Calls `step` in a replica of another task, and checks that it is refused.
void expect_refused(const Strategy& strategy, const char* what,
                    const std::function<void(ReplicaContext&)>& step) {
  const ScopedTask as_worker(worker(1));
  EXPECT_THAT(thrown<FailedPreconditionError>([&] { strategy.run(step); }),
              AllOf(HasSubstr(what), HasSubstr("belongs to /job:localhost/task:0"),
                    HasSubstr("in a step of /job:worker/task:1")));
}

TEST(SharedStrategy, AVariableBelongsToTheTaskThatMadeIt) {
  const MirroredStrategy strategy = mirrored(2);
  std::optional<Scope> scope(strategy.core());
  const Variable mirrored_one(at::ones({2}), {.name = "mirrored"});
  const Variable on_read(at::ones({2}), {.name = "on_read",
                                         .synchronization = VariableSynchronization::ON_READ,
                                         .aggregation = VariableAggregation::SUM});
  scope.reset();
  const Variable everyones(number(2), {.name = "everyone's"});
  for (const Variable& variable : {mirrored_one, on_read}) {
    const std::string name = "'" + variable.name() + "'";
    expect_refused(strategy, name.c_str(), [&](ReplicaContext&) { variable.value(); });
    expect_refused(strategy, name.c_str(),
                   [&](ReplicaContext&) { variable.assign(at::zeros({2})); });
    expect_refused(strategy, name.c_str(), [&](ReplicaContext&) {
      variable.scatter_add({.values = at::ones({1}), .indices = at::zeros({1}, at::kLong)});
    });
  }
  const ScopedTask as_worker(worker(1));
  strategy.run([&] { EXPECT_EQ(everyones.value().item<double>(), 2); });
  EXPECT_TRUE(at::equal(mirrored_one.value(), at::ones({2})));  // not in a step
}

TEST(SharedStrategy, GradientsOfAnotherTasksVariablesAreRefused) {
  const MirroredStrategy strategy = mirrored(2);
  std::vector<internal::UpdateTarget> targets;
  {
    const auto scope = strategy.scope();
    targets.push_back({Variable(at::ones({3}), {.name = "w"}), {}});
    for (int slot = 0; slot < 2; ++slot) targets.back().slots.emplace_back(at::zeros({3}));
  }
  const auto exchange = strategy.core()->make_exchange(targets);
  const auto rule = optim::make_adam({});
  const auto step = [&](ReplicaContext& replica) {
    exchange->begin(replica, internal::Arrival::kAtOnce);
    exchange->bring(replica, 0, at::ones({3}));
    exchange->finish(replica, {.rule = *rule, .learning_rate = 0.1});
  };
  expect_refused(strategy, "'w'", step);
  EXPECT_EQ(targets[0].variable.value()[0].item<double>(), 1);
  strategy.run(step);
  EXPECT_LT(targets[0].variable.value()[0].item<double>(), 1);
  const ScopedTask as_worker(worker(1));
  EXPECT_THROW(strategy.core()->make_exchange(targets), FailedPreconditionError);
}

TEST(SharedStrategy, AVariableOfEachTaskIsTrainedOnItsOwn) {
  const MirroredStrategy strategy = mirrored(2);
  std::vector<std::thread> threads;
  for (int index = 0; index < 3; ++index) {
    threads.emplace_back([&, index] {
      const ScopedTask as_worker(worker(index));
      std::optional<Scope> scope(strategy.core());
      const Variable sum(number(index), {.name = "sum", .aggregation = VariableAggregation::SUM});
      scope.reset();
      for (int i = 0; i < 10; ++i) strategy.run([&] { sum.assign_add(number(1)); });
      EXPECT_EQ(sum.value().item<double>(), index + 20);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(SharedStrategy, ACommunicatorServesOneTask) {
  const LogicalCpus cpus(1);
  const auto communicators = collective::make_socket_communicators(1);
  const Strategy strategy(std::make_shared<internal::LocalStrategy>(
      internal::LocalStrategy::Config{.name = "GroupStrategy",
                                      .devices = {canonicalize("CPU:0")},
                                      .communicator = communicators[0]}));
  strategy.run([] {});
  const ScopedTask as_worker(worker(1));
  EXPECT_THAT(thrown<FailedPreconditionError>([&] { strategy.run([] {}); }),
              AllOf(HasSubstr("this GroupStrategy exchanges values with other tasks for "
                              "/job:localhost/task:0"),
                    HasSubstr("/job:worker/task:1 needs one of its own")));
}

}  // namespace
}  // namespace cohort::distribute
