// A whole cluster in one process, over real sockets.
#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cohort/cluster/resolvers/simple_cluster_resolver.h"
#include "cohort/cluster/server.h"
#include "cohort/cluster/server_core.h"
#include "cohort/core/error.h"
#include "cohort/core/testing_errors.h"
#include "cohort/ops/lookup/static_hash_table.h"
#include "cohort/parameter_server/cluster_coordinator.h"
#include "cohort/parameter_server/parameter_server_core.h"
#include "cohort/parameter_server/parameter_server_strategy.h"
#include "cohort/parameter_server/runner/server_runner.h"
#include "cohort/parameter_server/testing_cluster.h"

namespace cohort::distribute {
namespace {

using coordinator::ClusterCoordinator;
using data::Dataset;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(ParameterServer, VariablesLiveOnPsTasks) {
  TestingCluster cluster(1, 2);
  const ParameterServerStrategy strategy(
      cluster.resolver(), {.variable_partitioner = partitioners::FixedShardsPartitioner(2)});
  const auto scope = strategy.scope();
  const Variable v(at::arange(10).reshape({5, 2}), {.name = "v", .trainable = false});
  EXPECT_TRUE(at::equal(v.value(), at::arange(10).reshape({5, 2})));
  v.assign_add(at::ones({5, 2}, int64));
  EXPECT_EQ(v.value()[4][1].item<int64_t>(), 10);
  v.scatter_add({.values = at::ones({2, 2}, int64) * 100, .indices = at::arange(2, 4)});
  EXPECT_EQ(v.value()[2][0].item<int64_t>(), 105);
  EXPECT_EQ(v.value()[3][0].item<int64_t>(), 107);
  EXPECT_EQ(v.value()[1][0].item<int64_t>(), 3);
}

TEST(ParameterServer, DevicesAreThisTasksAndThoseOfThePsTasks) {
  TestingCluster cluster(1, 2);
  const ParameterServerStrategy strategy(cluster.resolver());
  EXPECT_THAT(strategy.extended().parameter_devices(),
              ElementsAre("/job:ps/replica:0/task:0/device:CPU:0",
                          "/job:ps/replica:0/task:1/device:CPU:0"));
  EXPECT_THAT(strategy.extended().worker_devices(), ElementsAre(HasSubstr("device:CPU:0")));
  const auto own = strategy.function(
      "own", [&] { return StringTensor::scalar(strategy.extended().worker_devices().at(0)); });
  const ClusterCoordinator coordinator(strategy);
  EXPECT_EQ(coordinator.schedule(own).fetch().strings().to_vector().at(0),
            "/job:worker/replica:0/task:0/device:CPU:0");
}

// A table that the program makes is in each worker's own memory: a lookup is no call to another
// task.
TEST(ParameterServer, WorkersLookUpInTablesOfTheirOwn) {
  TestingCluster cluster(2, 1);
  const ParameterServerStrategy strategy(cluster.resolver());
  const auto make_table = [] {
    return lookup::StaticHashTable(
        lookup::KeyValueTensorInitializer(StringTensor({"no", "yes"}), at::arange(2)), -1);
  };
  const auto scope = strategy.scope();
  const auto table = make_table();
  const auto dataset_fn = strategy.function("dataset", [&] {
    const auto own = make_table();  // one made inside the function, too
    return Dataset::from_tensor_slices(Structure(StringTensor({"yes", "perhaps"})))
        .map([own, table](const StringTensor& answer) {
          return own.lookup(answer) + 10 * table.lookup(answer);
        })
        .batch(2);
  });
  const auto step = strategy.function(
      "step", [&](DistributedIterator& it) { return it.get_next().value(0).tensor(); });
  const auto look_up = strategy.function(
      "look_up", [&](const StringTensor& answers) { return table.lookup(answers); });
  ClusterCoordinator coordinator(strategy);
  EXPECT_TRUE(coordinator.schedule(look_up, StringTensor({"yes", "no", "?"}))
                  .fetch()
                  .tensor()
                  .equal(at::tensor({1, 0, -1}, int64)));
  const auto iterator = coordinator.create_per_worker_dataset(dataset_fn).iterator();
  EXPECT_TRUE(
      coordinator.schedule(step, iterator).fetch().tensor().equal(at::tensor({11, -11}, int64)));
}

TEST(ParameterServer, ScheduledFunctionsRunOnWorkersAndReturnValues) {
  TestingCluster cluster(2, 1);
  const ParameterServerStrategy strategy(cluster.resolver());
  Variable v;
  {
    const auto scope = strategy.scope();
    v = Variable(0.f, {.name = "v", .trainable = false, .aggregation = VariableAggregation::SUM});
  }
  const auto dataset_fn = strategy.function("dataset", [] {
    return Dataset::from_tensor_slices(Structure(at::full({1000}, 2.f))).batch(1);
  });
  const auto step = strategy.function("step", [&](DistributedIterator& it) {
    const auto batch = it.get_next();
    strategy.run([&](const Tensor& x) { v.assign_add(x.sum()); }, batch);
  });
  const auto add = strategy.function("add", [](const Tensor& x, double y) { return x + y; });
  ClusterCoordinator coordinator(strategy);
  EXPECT_TRUE(coordinator.done());
  const auto iterator = coordinator.create_per_worker_dataset(dataset_fn).iterator();
  for (int i = 0; i < 5; ++i) coordinator.schedule(step, iterator);
  coordinator.join();
  EXPECT_EQ(v.value().item<float>(), 10);
  for (int i = 0; i < 5; ++i) coordinator.schedule(step, iterator);
  for (int i = 0; i < 3; ++i) coordinator.join();
  EXPECT_EQ(v.value().item<float>(), 20);
  EXPECT_TRUE(coordinator.done());
  EXPECT_EQ(coordinator.schedule(add, at::ones({2}), 3.).fetch().tensor()[1].item<float>(), 4);
}

TEST(ParameterServer, TheFirstErrorIsThrownOnceAndTheCoordinatorGoesOn) {
  TestingCluster cluster(2, 1);
  const ParameterServerStrategy strategy(cluster.resolver());
  const auto good = strategy.function("good", [] { return 1; });
  const auto bad = strategy.function("bad", [](const Tensor& x) -> Tensor {
    throw InvalidArgumentError("no such row");
    return x;
  });
  ClusterCoordinator coordinator(strategy);
  for (int round = 0; round < 2; ++round) {
    for (int i = 0; i < 3; ++i) coordinator.schedule(good);
    const auto failed = coordinator.schedule(bad, at::ones({}));
    EXPECT_THAT(thrown<InvalidArgumentError>([&] { coordinator.join(); }),
                HasSubstr("no such row"));
    EXPECT_THAT(thrown<InvalidArgumentError>([&] { failed.fetch(); }), HasSubstr("no such row"));
    EXPECT_TRUE(coordinator.done());
  }
  EXPECT_EQ(coordinator.schedule(good).fetch().tensor().item<int>(), 1);
  coordinator.join();
}

TEST(ParameterServer, ALostWorkersClosuresRunOnOthersAndCountOnce) {
  TestingCluster cluster(3, 2);
  const ParameterServerStrategy strategy(cluster.resolver());
  const Variable count = [&] {
    const auto scope = strategy.scope();
    return Variable(0, {.name = "count", .aggregation = VariableAggregation::SUM});
  }();
  // Endless: how many steps run before the worker is back is a matter of time.
  const auto dataset_fn =
      strategy.function("dataset", [] { return Dataset::range(1000).repeat().batch(1); });
  const auto step = strategy.function("step", [&](DistributedIterator& it) {
    strategy.run([&](const Tensor&) { count.assign_add(1); }, it.get_next());
  });
  ClusterCoordinator coordinator(strategy, {.window = 4});
  const auto iterator = coordinator.create_per_worker_dataset(dataset_fn).iterator();
  for (int i = 0; i < 50; ++i) coordinator.schedule(step, iterator);
  cluster.stop("worker", 2);
  for (int i = 0; i < 50; ++i) coordinator.schedule(step, iterator);
  coordinator.join();
  EXPECT_EQ(count.value().item<int64_t>(), 100);
  EXPECT_FALSE(coordinator.workers()[2].is_alive);
  cluster.start("worker", 2);
  while (!coordinator.workers()[2].is_alive) {
    coordinator.schedule(step, iterator);
    coordinator.join();
  }
}

TEST(ParameterServer, ALaterCoordinatorsClosuresCountToo) {
  TestingCluster cluster(1, 1);
  const ParameterServerStrategy strategy(cluster.resolver());
  const Variable count = [&] {
    const auto scope = strategy.scope();
    return Variable(0, {.name = "count", .aggregation = VariableAggregation::SUM});
  }();
  const auto step = strategy.function("step", [&] { strategy.run([&] { count.assign_add(1); }); });
  for (int i = 1; i <= 3; ++i) {
    const ClusterCoordinator coordinator(strategy);
    for (int k = 0; k < 4; ++k) coordinator.schedule(step);
    coordinator.join();
    EXPECT_EQ(count.value().item<int64_t>(), 4 * i);
  }
}

// As of TensorFlow's, which gives the same object.
TEST(ParameterServer, AStrategyHasOneCoordinatorOfManyHandles) {
  TestingCluster cluster(1, 1);
  const ParameterServerStrategy strategy(cluster.resolver());
  const auto one = strategy.function("one", [] { return 1; });
  auto first = std::make_unique<ClusterCoordinator>(
      strategy, coordinator::ClusterCoordinatorOptions{.window = 3});
  const auto iterator =
      first->create_per_worker_dataset([] { return Dataset::range(9).batch(3); }).iterator();
  const ClusterCoordinator second(strategy);
  const ClusterCoordinator third(strategy, {.window = 3});
  EXPECT_THAT(thrown<FailedPreconditionError>([&] { ClusterCoordinator(strategy, {.window = 4}); }),
              HasSubstr("other options"));
  first->schedule([] { throw InvalidArgumentError("of the first"); });
  EXPECT_THAT(thrown<InvalidArgumentError>([&] { second.join(); }), HasSubstr("of the first"));
  first.reset();  // the others go on
  const auto rows = second.schedule(
      [](DistributedIterator& it) { return it.get_next().value(0).tensor().numel(); }, iterator);
  EXPECT_EQ(third.fetch(rows).tensor().item<int64_t>(), 3);
  EXPECT_EQ(ClusterCoordinator(third).schedule(one).fetch().tensor().item<int>(), 1);
}

// Programs of tests make several over the same servers. The iterators of the first are on the
// workers until the second takes them.
TEST(ParameterServer, ALaterStrategyTakesTheServersOver) {
  TestingCluster cluster(2, 2);
  const auto train = [&](const ParameterServerStrategy& strategy) {
    const auto scope = strategy.scope();
    const Variable count(0, {.name = "count", .aggregation = VariableAggregation::SUM});
    const ClusterCoordinator coordinator(strategy);
    const auto iterator =
        coordinator.create_per_worker_dataset([] { return Dataset::range(100).batch(1); })
            .iterator();
    for (int i = 0; i < 5; ++i) {
      coordinator.schedule(
          [&](DistributedIterator& it) {
            strategy.run([&](const Tensor&) { count.assign_add(1); }, it.get_next());
          },
          iterator);
    }
    coordinator.join();
    EXPECT_EQ(count.value().item<int64_t>(), 5);
    return count;
  };
  for (int i = 0; i < 2; ++i) train(ParameterServerStrategy(cluster.resolver()));
  // One that is still there is told what has happened, and the later one goes on.
  const ParameterServerStrategy first(cluster.resolver());
  const Variable old = train(first);
  const ClusterCoordinator of_first(first);
  const ParameterServerStrategy second(cluster.resolver());
  of_first.schedule([] {}).fetch();
  train(second);
  const std::string generation =
      internal::str("generation ", second.parameter_server_core()->cluster()->generation());
  const auto says_what_to_do =
      AllOf(HasSubstr("later ParameterServerStrategy"),
            HasSubstr("use one strategy after the other"), HasSubstr(generation));
  EXPECT_THAT(thrown<AbortedError>([&] { old.value(); }), says_what_to_do);
  EXPECT_THAT(thrown<AbortedError>([&] { old.assign(3); }), says_what_to_do);
  EXPECT_THAT(thrown<AbortedError>([&] {
                of_first.schedule([] {});
                of_first.join();
              }),
              HasSubstr(generation));
}

// In whatever order they are used for the first time, what counts is which was made later.
TEST(ParameterServer, AnEarlierStrategyDoesNotTakeTheServersBack) {
  TestingCluster cluster(1, 1);
  const ParameterServerStrategy first(cluster.resolver()), second(cluster.resolver());
  std::optional<Variable> kept;
  {
    const auto scope = second.scope();
    kept.emplace(3, VariableOptions{.name = "kept"});
  }
  const auto says_why =
      AllOf(HasSubstr("for the first time after one that the program has made later"),
            HasSubstr("make it after the other one has been used"));
  EXPECT_THAT(thrown<AbortedError>([&] {
                const auto scope = first.scope();
                const Variable lost(1);
              }),
              says_why);
  EXPECT_THAT(thrown<AbortedError>([&] { ClusterCoordinator{first}; }), says_why);
  EXPECT_EQ(kept->value().item<int64_t>(), 3);
  ParameterServerStrategy third(cluster.resolver());
  ClusterCoordinator(third).schedule([] {}).fetch();
}

TEST(ParameterServer, AFunctionTakesItsInputsAndThenArguments) {
  TestingCluster cluster(1, 1);
  const ParameterServerStrategy strategy(cluster.resolver());
  const auto ones = strategy.function(
      "ones", [] { return Dataset::from_tensor_slices(Structure(at::ones({8}))).batch(1); });
  const auto numbers = strategy.function("numbers", [] { return Dataset::range(8).batch(1); });
  const auto next = [](DistributedIterator& it) { return it.get_next().value(0).tensor().sum(); };
  const auto scaled =
      strategy.function("scaled", [&](DistributedIterator& it, double scale, const Tensor& offset) {
        return next(it) * scale + offset;
      });
  const auto both = strategy.function(
      "both", [&](DistributedIterator& a, DistributedIterator& b) { return next(a) + next(b); });
  ClusterCoordinator coordinator(strategy);
  const auto a = coordinator.create_per_worker_dataset(ones).iterator();
  const auto b = coordinator.create_per_worker_dataset(numbers).iterator();
  const auto value = [](const coordinator::RemoteValue& result) {
    return result.fetch().tensor().item<double>();
  };
  EXPECT_EQ(value(coordinator.schedule(scaled, a, 3., at::full({}, 0.5))), 3.5);
  EXPECT_EQ(value(coordinator.schedule(both, a, b)), 1);  // 1 + 0
  EXPECT_EQ(value(coordinator.schedule(both, a, b)), 2);  // 1 + 1
}

TEST(ParameterServer, ACoordinatorThatWasMovedFromSaysSo) {
  TestingCluster cluster(1, 1);
  const ParameterServerStrategy strategy(cluster.resolver());
  const auto one = strategy.function("one", [] { return 1; });
  ClusterCoordinator first(strategy);
  const ClusterCoordinator second(std::move(first));
  EXPECT_EQ(second.schedule(one).fetch().tensor().item<int>(), 1);
  EXPECT_THAT(thrown<FailedPreconditionError>([&] { first.schedule(one); }),
              HasSubstr("moved from"));
  EXPECT_THROW(first.join(), FailedPreconditionError);
}

TEST(ParameterServer, LibtorchsErrorsInAFunctionAreShortAndTyped) {
  TestingCluster cluster(1, 1);
  const ParameterServerStrategy strategy(cluster.resolver());
  const auto undefined = strategy.function("undefined", [] { return Tensor(); });
  const ClusterCoordinator coordinator(strategy);
  const auto result = coordinator.schedule(undefined);
  EXPECT_THAT(thrown<InvalidArgumentError>([&] { result.fetch(); }),
              ::testing::AllOf(HasSubstr("undefined"), ::testing::Not(HasSubstr("frame"))));
  EXPECT_THROW(coordinator.join(), InvalidArgumentError);  // else the next call throws it
  const auto beyond = strategy.function(
      "beyond", [] { return at::ones({2}).index_select(0, at::full({1}, 5, int64)); });
  const std::string text =
      thrown<InvalidArgumentError>([&] { coordinator.schedule(beyond).fetch(); });
  EXPECT_THAT(text, ::testing::StartsWith("'beyond' on worker 0: "));
  EXPECT_EQ(text.find("beyond"), text.rfind("beyond")) << text;
}

// Their tasks have the same names.
TEST(ParameterServer, TwoClustersOfOneProcessHaveNothingInCommon) {
  TestingCluster first(1, 1), second(1, 1);
  std::vector<std::unique_ptr<ParameterServerStrategy>> strategies;
  for (const auto* cluster : {&first, &second}) {
    strategies.push_back(std::make_unique<ParameterServerStrategy>(cluster->resolver()));
  }
  std::vector<Variable> variables;
  for (const auto& strategy : strategies) {
    const auto scope = strategy->scope();
    variables.emplace_back(at::zeros({2}), distribute::VariableOptions{.name = "v"});
  }
  for (size_t i = 0; i < 2; ++i) {
    const ClusterCoordinator coordinator(*strategies[i]);
    for (int step = 0; step < 5; ++step) {
      coordinator.schedule(
          [&, i] { strategies[i]->run([&] { variables[i].assign_add(at::full({2}, i + 1.f)); }); });
    }
    coordinator.join();
  }
  EXPECT_TRUE(at::equal(variables[0].value(), at::full({2}, 5.f)));
  EXPECT_TRUE(at::equal(variables[1].value(), at::full({2}, 10.f)));
}

TEST(ParameterServer, AServerIsFoundByItsClusterToo) {
  const internal::FreePorts ports = internal::pick_free_ports(2);
  const std::string host = "127.0.0.1:";
  const train::ClusterSpec elsewhere(
      {{"worker", {host + std::to_string(ports[0])}}, {"ps", {host + std::to_string(ports[1])}}});
  const TestingCluster own(1, 1);
  EXPECT_TRUE(internal::with_server(own.spec(), TaskId{"worker", 0}, [](internal::ServerCore&) {}));
  EXPECT_FALSE(internal::with_server(elsewhere, TaskId{"worker", 0}, [](internal::ServerCore&) {}));
}

// Where the original warns, or refuses: there is nothing to warn of.
TEST(ParameterServer, WithoutACoordinatorStepsRunInTheProgramItself) {
  TestingCluster cluster(1, 2);
  const ParameterServerStrategy strategy(cluster.resolver());
  const auto scope = strategy.scope();
  const Variable sum(0, {.name = "sum", .aggregation = VariableAggregation::SUM});
  int64_t total = 0;
  for (const auto& batch : strategy.experimental_distribute_dataset(Dataset::range(6).batch(2))) {
    const auto sums = strategy.run(
        [&](const Tensor& x) {
          sum.assign_add(x.sum());
          return x.sum();
        },
        batch);
    total += strategy.reduce(ReduceOp::SUM, sums).item<int64_t>();
    EXPECT_EQ(sum.value().item<int64_t>(), total);
  }
  EXPECT_EQ(total, 15);
}

TEST(ParameterServer, WhatRunsNowhereIsRefused) {
  TestingCluster cluster(1, 1);
  const ParameterServerStrategy strategy(cluster.resolver());
  const auto dataset_fn = strategy.function("dataset", [] { return Dataset::range(4).batch(1); });
  const auto step = strategy.function("step", [](DistributedIterator& it) { it.get_next(); });
  ClusterCoordinator coordinator(strategy);
  EXPECT_THAT(thrown<InvalidArgumentError>([&] { coordinator.schedule(dataset_fn); }),
              HasSubstr("create_per_worker_dataset"));
  EXPECT_THAT(thrown<InvalidArgumentError>([&] { coordinator.create_per_worker_dataset(step); }),
              HasSubstr("does not make an input"));
  EXPECT_THAT(thrown<FailedPreconditionError>([&] { coordinator.schedule(step).fetch(); }),
              HasSubstr("takes the worker's input"));
  EXPECT_ANY_THROW(coordinator.join());
  EXPECT_THAT(thrown<InvalidArgumentError>([&] {
                strategy.parameter_server_core()->named_functions().call_here(
                    internal::kRunStep,
                    tuple(at::arange(4), StringTensor(std::vector<std::string>{"step", ""})));
              }),
              HasSubstr("five numbers"));
  const auto refused = [](const train::ClusterSpec& spec) {
    return thrown<InvalidArgumentError>(
        [&] { ParameterServerStrategy{cluster_resolver::SimpleClusterResolver(spec)}; });
  };
  EXPECT_THAT(refused(train::ClusterSpec({{"ps", {"localhost:1"}}})),
              HasSubstr("at least one worker"));
  EXPECT_THAT(refused(train::ClusterSpec({{"worker", {"localhost:1"}}})),
              HasSubstr("at least one ps"));
  EXPECT_THAT(refused(train::ClusterSpec()),
              AllOf(HasSubstr("at least one worker"), HasSubstr("cohort launch")));
  EXPECT_THAT(
      refused(train::ClusterSpec(
          {{"worker", {"localhost:1"}}, {"ps", {"localhost:2"}}, {"foo", {"localhost:3"}}})),
      HasSubstr("Disallowed task type found in cluster spec: 'foo'"));
}

}  // namespace
}  // namespace cohort::distribute
