#include <ATen/core/grad_mode.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <limits>
#include <thread>

#include "cohort/core/cpu/intra_op_threads.h"
#include "cohort/core/program/task.h"
#include "cohort/core/threads/thread_pool.h"
#include "cohort/distribute/core/build_once.h"
#include "cohort/distribute/strategies/context.h"
#include "cohort/distribute/strategies/one_device_strategy.h"
#include "cohort/distribute/testing_devices.h"
#include "cohort/distribute/testing_errors.h"
#include "cohort/distribute/testing_numbers.h"
#include "cohort/ops/random.h"

namespace cohort::distribute {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(StrategyRun, ReplicasActForTheTaskOfTheCaller) {
  const MirroredStrategy strategy = mirrored(3);
  const auto devices = [&] { return strategy.run([] { return canonicalize("CPU:0"); }).values(); };
  {
    const internal::ScopedTask as_worker(internal::Task::named("worker", 1));
    EXPECT_THAT(devices(), ::testing::Each("/job:worker/replica:0/task:1/device:CPU:0"));
  }
  EXPECT_THAT(devices(), ::testing::Each("/job:localhost/replica:0/task:0/device:CPU:0"));
}

TEST(StrategyRun, RunsTheFunctionOnceOnEachReplica) {
  for (const int replicas : {1, 2, 3, 5}) {
    const MirroredStrategy strategy = mirrored(replicas);
    std::atomic<int> calls{0};
    const auto result = strategy.run([&](ReplicaContext& context) {
      ++calls;
      EXPECT_EQ(context.num_replicas_in_sync(), replicas);
      EXPECT_EQ(get_replica_context(), &context);
      EXPECT_TRUE(get_strategy() == context.strategy());
      return context.replica_id_in_sync_group();
    });
    EXPECT_EQ(calls, replicas);
    ASSERT_EQ(result.size(), static_cast<size_t>(replicas));
    for (int i = 0; i < replicas; ++i) EXPECT_EQ(result.value(i), i);
  }
}

TEST(StrategyRun, ReplicasRunAtTheSameTime) {
  const MirroredStrategy strategy = mirrored(3);
  std::atomic<int> inside{0};
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  strategy.run([&] {
    ++inside;
    while (inside < 3 && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
  });
  EXPECT_EQ(inside, 3);
}

TEST(StrategyRun, ThreadsPersistFromStepToStep) {
  const MirroredStrategy strategy = mirrored(2);
  const auto ids = [&] { return strategy.run([] { return std::this_thread::get_id(); }); };
  const auto first = ids(), second = ids();
  EXPECT_EQ(first.value(0), std::this_thread::get_id());
  EXPECT_NE(first.value(1), std::this_thread::get_id());
  EXPECT_EQ(first.value(1), second.value(1));
}

TEST(StrategyRun, PerReplicaArgumentsAreTakenApartAndOthersPassedWhole) {
  const MirroredStrategy strategy = mirrored(2);
  const PerReplica<Tensor> xs({number(1), number(2)});
  const auto sums = strategy.run(
      [](const Tensor& x, const Tensor& offset, int factor) { return (x + offset) * factor; }, xs,
      number(10), 3);
  EXPECT_EQ(sums.value(0).item<double>(), 33);
  EXPECT_EQ(sums.value(1).item<double>(), 36);
}

TEST(StrategyRun, ABatchArrivesWholeOrMemberByMember) {
  const MirroredStrategy strategy = mirrored(2);
  const PerReplica<Structure> batch(
      {tuple(number(1), StringTensor({"a"})), tuple(number(2), StringTensor({"b"}))});
  const auto whole =
      strategy.run([](const Structure& element) { return element[0].tensor() * 10; }, batch);
  EXPECT_EQ(whole.value(1).item<double>(), 20);
  const auto members = strategy.run(
      [](ReplicaContext& context, const Tensor& x, const StringTensor& name) {
        return std::string(name[0]) + std::to_string(static_cast<int>(x.item<double>())) +
               std::to_string(context.replica_id_in_sync_group());
      },
      batch);
  EXPECT_THAT(members.values(), ElementsAre("a10", "b21"));
  EXPECT_THAT(thrown<InvalidArgumentError>(
                  [&] { strategy.run([](const Tensor&, const Tensor&, const Tensor&) {}, batch); }),
              HasSubstr("takes 3 arguments"));
}

TEST(StrategyRun, StructuredBindingsGiveMembers) {
  const PerReplica<Structure> batch({tuple(number(1), number(2)), tuple(number(3), number(4))});
  const auto [xs, ys] = batch;
  EXPECT_EQ(xs.value(1).item<double>(), 3);
  EXPECT_EQ(ys.value(0).item<double>(), 2);
  EXPECT_EQ(batch[1].value(1).item<double>(), 4);
}

TEST(StrategyRun, ArgumentsWithAnotherNumberOfComponentsAreRefused) {
  const MirroredStrategy strategy = mirrored(3);
  EXPECT_THAT(thrown<InvalidArgumentError>([&] {
                strategy.run([](const Tensor&) {}, PerReplica<Tensor>({number(1), number(2)}));
              }),
              HasSubstr("2 components, but this process has 3 replicas"));
}

TEST(StrategyRun, ResultsOfAnyTypeComeBackPerReplica) {
  const MirroredStrategy strategy = mirrored(2);
  const auto pairs = strategy.run([](ReplicaContext& context) {
    return std::make_pair(std::string("r"), context.replica_id_in_sync_group());
  });
  EXPECT_EQ(pairs.value(1), (std::pair<std::string, int>("r", 1)));
  const auto structures = strategy.run([] { return tuple(1, 2); });
  EXPECT_EQ(structures.value(0)[1].tensor().item<int64_t>(), 2);
}

TEST(StrategyLocalResults, OfPlainValuesAreThoseAlone) {
  const MirroredStrategy strategy = mirrored(2);
  EXPECT_THAT(strategy.experimental_local_results(7), ElementsAre(7));
  const StringTensor words({"a"});
  EXPECT_THAT(strategy.experimental_local_results(words), ElementsAre(words));
  EXPECT_EQ(strategy.experimental_local_results(number(3)).at(0).item<double>(), 3);
  const std::vector<Structure> plain = strategy.experimental_local_results(tuple(1, words));
  ASSERT_EQ(plain.size(), 1U);
  EXPECT_EQ(plain[0][1].strings(), words);
}

TEST(StrategyLocalResults, OfStructuresAreOneForEachReplica) {
  const MirroredStrategy strategy = mirrored(2);
  const std::vector<Structure> each =
      strategy.experimental_local_results(strategy.run([](ReplicaContext& context) {
        return dict({{"id", context.replica_id_in_sync_group()}, {"pair", tuple(1, 2)}});
      }));
  ASSERT_EQ(each.size(), 2U);
  EXPECT_EQ(each[1]["id"].tensor().item<int64_t>(), 1);
  EXPECT_EQ(each[1]["pair"].size(), 2U);
}

TEST(StrategyLocalResults, OfAVariableAreItsComponents) {
  const MirroredStrategy strategy = mirrored(2);
  auto scope = strategy.scope();
  const Variable v(number(5));
  const std::vector<Tensor> components = strategy.experimental_local_results(v);
  ASSERT_EQ(components.size(), 2U);
  EXPECT_EQ(components[1].item<double>(), 5);
}

TEST(StrategyRun, AFunctionLiesAsAlignedAsItAsks) {
  struct alignas(1024) Page {
    char bytes[1024] = {};
  };
  const MirroredStrategy strategy = mirrored(2);
  for (int step = 0; step < 3; ++step) {
    const auto aligned = strategy.run(
        [page = Page()] { return reinterpret_cast<uintptr_t>(page.bytes) % alignof(Page) == 0; });
    EXPECT_THAT(aligned.values(), ElementsAre(true, true));
  }
}

TEST(StrategyRun, AVariableComesBackAsItself) {
  const MirroredStrategy strategy = mirrored(2);
  auto scope = strategy.scope();
  const Variable v(number(1));
  scope.close();
  EXPECT_TRUE(strategy.run([&] { return v; }) == v);
}

TEST(StrategyRun, GradModeIsOffAndResultsHaveNoGraph) {
  const MirroredStrategy strategy = mirrored(2);
  auto scope = strategy.scope();
  const Variable v(number(3));
  scope.close();
  ASSERT_TRUE(at::GradMode::is_enabled());
  const auto recorded = strategy.run([&] {
    EXPECT_FALSE(at::GradMode::is_enabled());
    at::GradMode::set_enabled(true);
    const Tensor square = v.value() * v.value();
    EXPECT_TRUE(square.requires_grad());
    return square;
  });
  EXPECT_TRUE(at::GradMode::is_enabled());
  for (const Tensor& value : recorded.values()) EXPECT_FALSE(value.requires_grad());
}

TEST(StrategyRun, ReplicasShareOutTheIntraOpThreads) {
  const int before = internal::intra_op_threads();
  const MirroredStrategy strategy = mirrored(2);
  const auto counts = strategy.run([] { return internal::intra_op_threads(); });
  const int expected = std::max(1, internal::num_usable_cores() / 2);
  EXPECT_THAT(counts.values(), ElementsAre(expected, expected));
  EXPECT_EQ(internal::intra_op_threads(), before);
}

#if defined(__x86_64__) || defined(__aarch64__)
TEST(StrategyRun, DenormalsAreZeroInAStepAndNowhereElse) {
  const auto flushes = [] {
    volatile float smallest_normal = std::numeric_limits<float>::min();
    volatile float half = smallest_normal * 0.5F;
    return half == 0.0F ? 1 : 0;
  };
  EXPECT_THAT(mirrored(3).run(flushes).values(), ElementsAre(1, 1, 1));
  EXPECT_THAT(get_strategy().run(flushes).values(), ElementsAre(1));
  EXPECT_EQ(flushes(), 0);
}
#endif

TEST(StrategyRun, RandomNumbersDifferBetweenReplicasAndRepeatWithTheSeed) {
  const auto draw = [] {
    random::set_seed(7);
    const MirroredStrategy strategy = mirrored(2);
    return strategy.run([] { return random::uniform({}).item<float>(); });
  };
  const auto first = draw(), second = draw();
  EXPECT_NE(first.value(0), first.value(1));
  EXPECT_EQ(first.value(0), second.value(0));
  EXPECT_EQ(first.value(1), second.value(1));
}

TEST(StrategyRun, WhatIsSeededInOrAfterIsTheSameForEveryNumberOfReplicas) {
  const auto draw = [](int replicas) {
    random::set_seed(7);
    const MirroredStrategy strategy = mirrored(replicas);
    const Variable in_step = strategy.run(
        [] { return Variable([] { return random::uniform({}); }, {.name = "in_step"}); });
    internal::BuildOnce once;
    Variable built;
    strategy.run([&] { once("layer", [&] { built = Variable(random::uniform({})); }); });
    return std::vector<float>{in_step.components().value(0).item<float>(),
                              built.components().value(0).item<float>(),
                              static_cast<float>(internal::next_seed() % 1000)};
  };
  const auto one = draw(1);
  for (const int replicas : {2, 3, 5}) EXPECT_EQ(draw(replicas), one);
}

TEST(StrategyRun, ASeedSetLaterReachesTheReplicas) {
  const MirroredStrategy strategy = mirrored(2);
  const auto draw = [&] {
    random::set_seed(11);
    return strategy.run([] { return random::uniform({}).item<float>(); });
  };
  const auto first = draw();
  EXPECT_EQ(draw().values(), first.values());
}

TEST(StrategyRun, SequentialReplicasRunOneAfterAnother) {
  const MirroredStrategy strategy = mirrored(3);
  std::vector<int> order;  // no lock: that is the point
  strategy.run(RunOptions{.concurrent = false}, [&](ReplicaContext& context) {
    order.push_back(context.replica_id_in_sync_group());
    context.all_reduce(ReduceOp::SUM, number(1));
    order.push_back(10 + context.replica_id_in_sync_group());
  });
  EXPECT_THAT(order, ElementsAre(0, 1, 2, 10, 11, 12));
}

TEST(StrategyRun, DefaultStrategyJustCallsTheFunction) {
  const Strategy strategy = get_strategy();
  EXPECT_FALSE(has_strategy());
  const auto result = strategy.run(
      [](ReplicaContext& context, const Tensor& x) {
        EXPECT_EQ(context.num_replicas_in_sync(), 1);
        EXPECT_FALSE(has_strategy());
        return x + context.replica_id_in_sync_group();
      },
      number(5));
  EXPECT_EQ(result.item().item<double>(), 5);
}

TEST(StrategyRun, OneDeviceStrategyIsAStrategyOfOneReplica) {
  LogicalCpus cpus(2);
  const OneDeviceStrategy strategy("CPU:1");
  EXPECT_EQ(strategy.num_replicas_in_sync(), 1);
  const auto devices = strategy.run([](ReplicaContext& context) {
    EXPECT_TRUE(has_strategy());
    return context.devices()[0];
  });
  EXPECT_EQ(devices.item(), "/job:localhost/replica:0/task:0/device:CPU:1");
}

TEST(StrategyRun, ManyStepsInARow) {
  const MirroredStrategy strategy = mirrored(2);
  std::atomic<int> calls{0};
  for (int i = 0; i < 500; ++i) strategy.run([&] { calls.fetch_add(1); });
  EXPECT_EQ(calls, 1000);
}

TEST(MirroredStrategy, ChecksItsDevices) {
  LogicalCpus cpus(2);
  EXPECT_THAT(thrown<InvalidArgumentError>([] { MirroredStrategy{std::vector<std::string>{}}; }),
              HasSubstr("at least one device"));
  EXPECT_THAT(thrown<InvalidArgumentError>([] {
                MirroredStrategy({"CPU:0", "/cpu:0"});
              }),
              HasSubstr("device:CPU:0 twice"));
  EXPECT_THAT(thrown<InvalidArgumentError>([] {
                MirroredStrategy({"CPU:0", "CPU:7"});
              }),
              HasSubstr("CPU:7"));
  EXPECT_THAT(thrown<InvalidArgumentError>([] { MirroredStrategy({"GPU:0:0"}); }),
              HasSubstr("GPU:0:0"));
  const MirroredStrategy strategy({"CPU:1"});
  EXPECT_THAT(strategy.extended().worker_devices(),
              ElementsAre("/job:localhost/replica:0/task:0/device:CPU:1"));
}

}  // namespace
}  // namespace cohort::distribute
