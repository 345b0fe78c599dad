// Datasets of which each worker has one, on an in-process cluster.
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/sort.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <mutex>
#include <vector>

#include "cohort/core/error.h"
#include "cohort/core/testing_errors.h"
#include "cohort/ops/random.h"
#include "cohort/ops/testing_seed.h"
#include "cohort/parameter_server/cluster_coordinator.h"
#include "cohort/parameter_server/parameter_server_strategy.h"
#include "cohort/parameter_server/testing_cluster.h"
#include "cohort/parameter_server/testing_gate.h"

namespace cohort::distribute {
namespace {

using coordinator::ClusterCoordinator;
using coordinator::RemoteValue;
using data::Dataset;
using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(PerWorkerDataset, IsMadeFromEveryForm) {
  TestingCluster cluster(2, 1);
  const ParameterServerStrategy strategy(cluster.resolver());
  const auto plain = strategy.function("plain", [] { return Dataset::range(8).batch(1); });
  const auto with_context = strategy.function("with_context", [](const InputContext& context) {
    EXPECT_EQ(coordinator::get_current_worker_index(), context.input_pipeline_id);
    return Dataset::range(8).batch(1).shard(2, context.input_pipeline_id);
  });
  const auto distributed = strategy.function("distributed", [&strategy](const InputContext&) {
    return strategy.experimental_distribute_dataset(Dataset::range(8).batch(1));
  });
  const ClusterCoordinator coordinator(strategy);
  const auto read = [&](const coordinator::PerWorkerDataset& dataset) {
    const auto iterator = dataset.iterator();
    std::vector<RemoteValue> values;
    for (int i = 0; i < 4; ++i) {
      values.push_back(coordinator.schedule(
          [](DistributedIterator& it) {
            it.get_next();
            return 1;
          },
          iterator));
    }
    coordinator.join();
    return values.size();
  };
  EXPECT_EQ(read(coordinator.create_per_worker_dataset(plain)), 4u);
  EXPECT_EQ(read(coordinator.create_per_worker_dataset(with_context)), 4u);
  EXPECT_EQ(read(coordinator.create_per_worker_dataset(distributed)), 4u);
  EXPECT_EQ(read(coordinator.create_per_worker_dataset(Dataset::range(8).batch(1))), 4u);
  EXPECT_EQ(read(coordinator.create_per_worker_dataset([] { return Dataset::range(8).batch(1); })),
            4u);
  EXPECT_EQ(read(coordinator.create_per_worker_dataset([](const InputContext& context) {
              return Dataset::range(8).batch(context.num_input_pipelines);
            })),
            4u);
  EXPECT_THAT(thrown<FailedPreconditionError>([] { coordinator::get_current_worker_index(); }),
              HasSubstr("runs no function of a worker"));
}

TEST(PerWorkerDataset, SaysWhatItsElementsAre) {
  TestingCluster cluster(2, 1);
  const ParameterServerStrategy strategy(cluster.resolver(), {.worker_devices = {"CPU:0"}});
  const ClusterCoordinator coordinator(strategy);
  const auto make = [] { return Dataset::range(10).batch(4, {.drop_remainder = true}); };
  const PerReplicaSpec expected{make().element_spec(), 1};
  EXPECT_EQ(coordinator.create_per_worker_dataset(make()).element_spec(), expected);
  EXPECT_EQ(coordinator.create_per_worker_dataset(make).element_spec(), expected);
  std::atomic<int> runs{0};
  const auto of_worker = coordinator.create_per_worker_dataset([&](const InputContext& context) {
    ++runs;
    EXPECT_EQ(context.input_pipeline_id, coordinator::get_current_worker_index());
    return strategy.experimental_distribute_dataset(make());
  });
  EXPECT_EQ(of_worker.element_spec(), expected);
  EXPECT_EQ(runs, 1);  // here, and on no worker
  const auto fails = coordinator.create_per_worker_dataset(
      []() -> Dataset { throw NotFoundError("no such file"); });
  EXPECT_THAT(thrown<NotFoundError>([&] { (void)fails.element_spec(); }),
              HasSubstr("no such file"));
  const auto variable = coordinator.create_per_worker_dataset([] {
    const Variable v(1.f);
    return Dataset::range(1).batch(1);
  });
  EXPECT_THROW((void)variable.element_spec(), InvalidArgumentError);
}

TEST(PerWorkerDataset, KeepsItsOptions) {
  TestingCluster cluster(2, 1);
  const ParameterServerStrategy strategy(cluster.resolver());
  const ClusterCoordinator coordinator(strategy);
  const Dataset made_outside = Dataset::range(8).batch(1);
  const auto elements = [&](data::AutoShardPolicy policy) {
    data::Options options;
    options.experimental_distribute.auto_shard_policy = policy;
    const auto dataset = coordinator.create_per_worker_dataset([=](const InputContext& context) {
      return strategy.experimental_distribute_dataset(made_outside.with_options(options))
          .auto_shard(context.num_input_pipelines, context.input_pipeline_id);
    });
    const auto count = coordinator.schedule(
        [](DistributedIterator& it) {
          int64_t count = 0;
          while (it.next()) ++count;
          return count;
        },
        dataset.iterator());
    return count.fetch().tensor().item<int64_t>();
  };
  EXPECT_EQ(elements(data::AutoShardPolicy::DATA), 4);
  EXPECT_EQ(elements(data::AutoShardPolicy::OFF), 8);
}

// TensorFlow's testDatasetsShuffledDifferently, without random::set_seed, for a dataset function
// and for one dataset of the program.
TEST(PerWorkerDataset, IsShuffledOtherwiseOnEachWorker) {
  TestingCluster cluster(2, 1);
  const ParameterServerStrategy strategy(cluster.resolver());
  const auto make = [] { return Dataset::range(50).shuffle(50).batch(50); };
  const ClusterCoordinator coordinator(strategy, {.window = 1});
  for (const auto& dataset : {coordinator.create_per_worker_dataset(make),
                              coordinator.create_per_worker_dataset(make())}) {
    Gate gate;  // so that each worker has one of them
    const auto read = [&gate](DistributedIterator& it) {
      gate.pass();
      return it.get_next().value(0);
    };
    const auto iterator = dataset.iterator();
    const RemoteValue first = coordinator.schedule(read, iterator);
    const RemoteValue second = coordinator.schedule(read, iterator);
    EXPECT_TRUE(gate.wait_for(2));
    gate.open();
    const Tensor a = first.fetch().tensor(), b = second.fetch().tensor();
    EXPECT_TRUE(at::equal(std::get<0>(a.sort()), at::arange(50)));
    EXPECT_TRUE(at::equal(std::get<0>(b.sort()), at::arange(50)));
    EXPECT_FALSE(at::equal(a, b)) << a;
    coordinator.join();
  }
}

TEST(PerWorkerDataset, HandlesThatWereMovedFromSaySo) {
  const TestingCluster cluster(1, 1);
  const ParameterServerStrategy strategy(cluster.resolver());
  const ClusterCoordinator coordinator(strategy);
  auto dataset = coordinator.create_per_worker_dataset([] { return Dataset::range(3); });
  auto iterator = dataset.iterator();
  auto value = coordinator.create_per_worker_value(strategy.function("one", [] { return 1; }));
  RemoteValue result = coordinator.schedule([](int64_t x) { return x; }, value);
  const auto moved = [](auto& handle) { [[maybe_unused]] const auto other = std::move(handle); };
  moved(dataset);
  moved(iterator);
  moved(value);
  moved(result);
  const auto next = [](DistributedIterator& it) { return it.get_next().value(0); };
  const auto same = [](int64_t x) { return x; };
  const auto refused = [](const auto& use) { return thrown<FailedPreconditionError>(use); };
  EXPECT_THAT(refused([&] { dataset.iterator(); }), HasSubstr("PerWorkerDataset"));
  EXPECT_THAT(refused([&] { dataset.element_spec(); }), HasSubstr("PerWorkerDataset"));
  EXPECT_THAT(refused([&] { coordinator.schedule(next, iterator); }),
              HasSubstr("PerWorkerIterator"));
  EXPECT_THAT(refused([&] { coordinator.schedule(same, value); }), HasSubstr("PerWorkerValue"));
  EXPECT_THAT(refused([&] { coordinator.fetch(value); }), HasSubstr("PerWorkerValue"));
  EXPECT_THAT(refused([&] { coordinator.schedule(same, result); }), HasSubstr("RemoteValue"));
  EXPECT_THAT(refused([&] { result.fetch(); }), HasSubstr("RemoteValue"));
  EXPECT_THAT(refused([&] { result.status(); }), HasSubstr("RemoteValue"));
  coordinator.join(std::chrono::seconds(20));
}

// As workers that are processes of their own, all with the same random::set_seed, make it.
TEST(PerWorkerDataset, OfAFunctionHasOneOrderUnderOneSeedWhichWorkersDivide) {
  TestingCluster cluster(2, 1);
  const ParameterServerStrategy strategy(cluster.resolver());
  std::mutex one_at_a_time;
  const auto make = [&](const InputContext& context) {
    const std::lock_guard lock(one_at_a_time);
    random::set_seed(7);
    const Dataset dataset = Dataset::range(50).shuffle(50);
    internal::forget_seed();
    return dataset.shard(context.num_input_pipelines, context.input_pipeline_id).batch(25);
  };
  const ClusterCoordinator coordinator(strategy, {.window = 1});
  const auto iterator = coordinator.create_per_worker_dataset(make).iterator();
  Gate gate;  // so that each worker has one of them
  const auto read = [&gate](DistributedIterator& it) {
    gate.pass();
    return it.get_next().value(0);
  };
  const RemoteValue first = coordinator.schedule(read, iterator);
  const RemoteValue second = coordinator.schedule(read, iterator);
  EXPECT_TRUE(gate.wait_for(2));
  gate.open();
  const Tensor all = at::cat({first.fetch().tensor(), second.fetch().tensor()});
  EXPECT_TRUE(at::equal(std::get<0>(all.sort()), at::arange(50))) << all;
  EXPECT_FALSE(at::equal(all, at::arange(50)));
}

// The program's data may be as large as its memory.
TEST(PerWorkerDataset, OfTheProgramsOwnObjectsLetsGoOfThem) {
  TestingCluster cluster(1, 1);
  const ParameterServerStrategy strategy(cluster.resolver());
  const ClusterCoordinator coordinator(strategy);
  auto own = std::make_shared<int64_t>(3);
  const std::weak_ptr<int64_t> stays = own;
  std::optional dataset =
      coordinator.create_per_worker_dataset([own] { return Dataset::range(*own).batch(1); });
  own.reset();
  std::optional copy = *dataset;
  dataset.reset();
  EXPECT_NO_THROW((void)copy->element_spec());
  ASSERT_FALSE(stays.expired());
  copy.reset();
  EXPECT_TRUE(stays.expired());
}

TEST(PerWorkerDataset, ThatFailsIsTheErrorOfWhoUsesItAndOfNobodyElse) {
  TestingCluster cluster(1, 1);
  const ParameterServerStrategy strategy(cluster.resolver());
  const auto fails = strategy.function(
      "fails", []() -> Dataset { throw NotFoundError("there is no such directory"); });
  const auto use = strategy.function("use", [](DistributedIterator& it) { it.get_next(); });
  const auto good = strategy.function("good", [] { return 1; });
  const ClusterCoordinator coordinator(strategy);
  const auto iterator = coordinator.create_per_worker_dataset(fails).iterator();
  EXPECT_EQ(coordinator.schedule(good).fetch().tensor().item<int>(), 1);
  coordinator.join();  // unused it harms nobody
  const RemoteValue value = coordinator.schedule(use, iterator);
  const auto says_why = AllOf(HasSubstr("input of this closure could not be made"),
                              HasSubstr("there is no such directory"));
  EXPECT_THAT(thrown<NotFoundError>([&] { coordinator.join(); }), says_why);
  EXPECT_THAT(thrown<NotFoundError>([&] { value.fetch(); }), says_why);
}

// Its own class is for who mends the data, and the other one for who tells it from a broken
// function.
TEST(PerWorkerDataset, ThatFailsIsAClosureInputErrorToo) {
  TestingCluster cluster(1, 1);
  const ParameterServerStrategy strategy(cluster.resolver());
  const auto fails = strategy.function(
      "fails", []() -> Dataset { throw NotFoundError("there is no such directory"); });
  const auto use = strategy.function("use", [](DistributedIterator& it) { it.get_next(); });
  const auto broken = strategy.function("broken", [] { throw NotFoundError("no row"); });
  const ClusterCoordinator coordinator(strategy);
  const RemoteValue value =
      coordinator.schedule(use, coordinator.create_per_worker_dataset(fails).iterator());
  try {
    coordinator.join();
    ADD_FAILURE() << "join returned";
  } catch (const coordinator::ClosureInputError& input) {
    EXPECT_EQ(input.error().code(), Code::kNotFound);
    EXPECT_EQ(input.error().task(), "/job:worker/task:0");
    EXPECT_THAT(input.error().what(), AllOf(HasSubstr("'use' on worker 0"), HasSubstr("'fails'"),
                                            HasSubstr("there is no such directory")));
  }
  EXPECT_THROW(value.fetch(), coordinator::ClosureInputError);
  coordinator.schedule(broken);
  try {
    coordinator.join();
    ADD_FAILURE() << "join returned";
  } catch (const coordinator::ClosureInputError&) {
    ADD_FAILURE() << "it is the function that has failed";
  } catch (const NotFoundError&) {
  }
}

// It does not say that the worker ends, which would be taken again, and again fail.
TEST(PerWorkerDataset, ThatThrowsCancelledFailsAsAnyOther) {
  TestingCluster cluster(1, 1);
  const ParameterServerStrategy strategy(cluster.resolver());
  const auto fails = [](const char* why) {
    return [why]() -> Dataset { throw CancelledError(why); };
  };
  const auto makes_value =
      strategy.function("makes_value", []() -> Tensor { throw CancelledError("not wanted"); });
  const ClusterCoordinator coordinator(strategy);
  const auto expect_cancelled = [&](const RemoteValue& value) {
    EXPECT_THAT(thrown<CancelledError>([&] { value.fetch(std::chrono::seconds(20)); }),
                AllOf(HasSubstr("could not be made"), HasSubstr("not wanted")));
    EXPECT_THROW(coordinator.join(std::chrono::seconds(20)), coordinator::ClosureInputError);
    EXPECT_TRUE(coordinator.workers()[0].is_alive);
  };
  expect_cancelled(
      coordinator.schedule([](DistributedIterator& it) { it.get_next(); },
                           coordinator.create_per_worker_dataset(fails("not wanted")).iterator()));
  expect_cancelled(coordinator.schedule([](const Tensor& own) { return own; },
                                        coordinator.create_per_worker_value(makes_value)));
}

// Named or not, with a context or without, of either type, under the scope or outside of it.
TEST(PerWorkerDataset, MakesNoVariables) {
  TestingCluster cluster(1, 1);
  const ParameterServerStrategy strategy(cluster.resolver());
  const auto data = [] { return Dataset::range(4); };
  const auto under_scope = [&] {
    const auto scope = strategy.scope();
    const Variable v(0, {.name = "v"});
  };
  const auto outside = [] {
    const Variable v({.options = {.name = "v"}},
                     [](const ShardInfo& part) { return at::zeros(part.shape); });
  };
  const auto named = strategy.function("named", [&] {
    under_scope();
    return data();
  });
  const auto with_context = strategy.function("with_context", [&](const InputContext&) {
    outside();
    return data();
  });
  const auto distributed = strategy.function("distributed", [&](const InputContext&) {
    outside();
    return strategy.experimental_distribute_dataset(data().batch(1));
  });
  const ClusterCoordinator coordinator(strategy);
  const auto refused = [&](const coordinator::PerWorkerDataset& dataset) {
    const auto iterator = dataset.iterator();
    coordinator.schedule([](DistributedIterator& it) { it.get_next(); }, iterator);
    return thrown<InvalidArgumentError>([&] { coordinator.join(); });
  };
  const auto says_so = HasSubstr("a dataset function makes variable 'v'");
  EXPECT_THAT(refused(coordinator.create_per_worker_dataset(named)), says_so);
  EXPECT_THAT(refused(coordinator.create_per_worker_dataset(with_context)), says_so);
  EXPECT_THAT(refused(coordinator.create_per_worker_dataset(distributed)), says_so);
  for (const auto& make : std::vector<std::function<void()>>{under_scope, outside}) {
    EXPECT_THAT(refused(coordinator.create_per_worker_dataset([&] {
                  make();
                  return data();
                })),
                says_so);
    EXPECT_THAT(refused(coordinator.create_per_worker_dataset([&](const InputContext&) {
                  make();
                  return data();
                })),
                says_so);
    EXPECT_THAT(refused(coordinator.create_per_worker_dataset([&] {
                  make();
                  return strategy.experimental_distribute_dataset(data().batch(1));
                })),
                says_so);
  }
  // The worker makes variables again afterwards; a value of its own may have some, if they are its
  // own, too.
  const auto makes_value = strategy.function("makes_value", [&] {
    outside();
    return 1;
  });
  EXPECT_EQ(coordinator.schedule(makes_value).fetch().tensor().item<int>(), 1);
  const auto plus = strategy.function("plus", [](const Tensor& own) { return own + 1; });
  EXPECT_EQ(coordinator.schedule(plus, coordinator.create_per_worker_value(makes_value))
                .fetch()
                .tensor()
                .item<int>(),
            2);
  const auto served_value = strategy.function("served_value", [&] {
    under_scope();
    return 1;
  });
  coordinator.schedule(plus, coordinator.create_per_worker_value(served_value));
  EXPECT_THAT(thrown<InvalidArgumentError>([&] { coordinator.join(); }),
              HasSubstr("a value of each worker makes variable 'v'"));
}

}  // namespace
}  // namespace cohort::distribute
