// A coordinator's public face, on an in-process cluster.
#include "cohort/parameter_server/coordinator/cluster_coordinator.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <future>
#include <optional>
#include <thread>
#include <vector>

#include "cohort/core/error.h"
#include "cohort/core/monitoring.h"
#include "cohort/core/testing_errors.h"
#include "cohort/data/testing_files.h"
#include "cohort/parameter_server/coordinator/coordinator_core.h"
#include "cohort/parameter_server/parameter_server_core.h"
#include "cohort/parameter_server/parameter_server_strategy.h"
#include "cohort/parameter_server/testing_cluster.h"
#include "cohort/parameter_server/testing_gate.h"
#include "cohort/train/checkpoint.h"
#include "cohort/train/summary/testing_events.h"

namespace cohort::distribute {
namespace {

using coordinator::ClusterCoordinator;
using coordinator::RemoteValue;
using coordinator::RemoteValueStatus;
using data::Dataset;
using std::chrono::seconds;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::StartsWith;

int64_t number(const RemoteValue& value) { return value.fetch().tensor().item<int64_t>(); }

TEST(ClusterCoordinator, FetchesNestedResults) {
  TestingCluster cluster(1, 1);
  const ParameterServerStrategy strategy(cluster.resolver());
  const auto nested = strategy.function("nested", [](int64_t x) {
    return tuple(x + 1, tuple(x + 2, x + 3), dict({{"v", x}}));
  });
  const ClusterCoordinator coordinator(strategy);
  const RemoteValue value = coordinator.schedule(nested, int64_t{1});
  for (const Structure& result : {coordinator.fetch(value), value.get()}) {
    EXPECT_EQ(result[0].tensor().item<int64_t>(), 2);
    EXPECT_EQ(result[1][1].tensor().item<int64_t>(), 4);
    EXPECT_EQ(result[2]["v"].tensor().item<int64_t>(), 1);
  }
  EXPECT_EQ(value.status(), RemoteValueStatus::READY);
}

int64_t times_counted(const std::string& name) {
  for (const monitoring::Timing& timing : monitoring::timings()) {
    if (timing.name == name) return timing.count;
  }
  return 0;
}

TEST(ClusterCoordinator, WhatItDoesIsTimed) {
  TestingCluster cluster(1, 1);
  const ParameterServerStrategy strategy(cluster.resolver());
  const auto one = strategy.function("one", [] { return 1; });
  ClusterCoordinator coordinator(strategy);
  const int64_t closures = times_counted("closure_execution");
  const int64_t fetches = times_counted("remote_value_fetch");
  const RemoteValue value = coordinator.schedule(one);
  coordinator.schedule(one);
  coordinator.join();
  value.fetch();
  EXPECT_EQ(times_counted("closure_execution"), closures + 2);
  EXPECT_EQ(times_counted("remote_value_fetch"), fetches + 1);
}

// As Strategy::run does.
TEST(ClusterCoordinator, OneStructureIsTheFunctionsInput) {
  TestingCluster cluster(1, 1);
  const ParameterServerStrategy strategy(cluster.resolver());
  const auto of_dict = [](const Structure& x) { return x["a"].tensor() * 10 + x["b"].tensor(); };
  const auto by_name = strategy.function("by_name", of_dict);
  const auto minus = strategy.function("minus", [](int64_t a, int64_t b) { return a - b; });
  const auto make = strategy.function("make", [] { return dict({{"a", 7}, {"b", 8}}); });
  const auto shifted =
      strategy.function("shifted", [](DistributedIterator& it, const Structure& x) {
        return it.get_next().value(0).tensor().sum() + x["a"].tensor();
      });
  const auto sum = strategy.function("sum", [](const Structure& x, const Structure& y) {
    return x["a"].tensor() + y["a"].tensor();
  });
  const ClusterCoordinator coordinator(strategy);
  const Structure x = dict({{"a", 2}, {"b", 3}});
  const auto in_step = strategy.run(of_dict, x);
  EXPECT_EQ(number(coordinator.schedule(by_name, x)), in_step.value(0).item<int64_t>());
  EXPECT_EQ(number(coordinator.schedule(of_dict, x)), 23);
  EXPECT_EQ(number(coordinator.schedule(by_name, coordinator.schedule(make))), 78);
  EXPECT_EQ(number(coordinator.schedule(minus, tuple(5, 3))), 2);
  EXPECT_EQ(number(coordinator.schedule(minus, int64_t{5}, int64_t{3})), 2);
  EXPECT_EQ(number(coordinator.schedule(sum, x, x)), 4);
  const auto iterator =
      coordinator.create_per_worker_dataset([] { return Dataset::range(5, 9).batch(1); })
          .iterator();
  EXPECT_EQ(number(coordinator.schedule(shifted, iterator, x)), 7);
}

TEST(ClusterCoordinator, AResultIsAnArgumentOfALaterFunction) {
  TestingCluster cluster(2, 1);
  const ParameterServerStrategy strategy(cluster.resolver());
  Gate gate;
  const auto slow = strategy.function("slow", [&](int64_t x) {
    gate.pass();
    return x;
  });
  const auto add = strategy.function("add", [](int64_t x, int64_t y) { return x + y; });
  Gate scheduled;
  const auto bad = strategy.function("bad", [&]() -> int64_t {
    scheduled.pass();
    throw DataLossError("no such row");
  });
  const ClusterCoordinator coordinator(strategy);
  const RemoteValue three = coordinator.schedule(slow, int64_t{3});
  const RemoteValue seven = coordinator.schedule(add, three, int64_t{4});
  const RemoteValue ten = coordinator.schedule(add, seven, three);
  ASSERT_TRUE(gate.wait_for(1));
  EXPECT_EQ(ten.status(), RemoteValueStatus::NOT_READY);
  EXPECT_FALSE(coordinator.done());
  gate.open();
  EXPECT_EQ(number(ten), 10);
  EXPECT_EQ(number(coordinator.schedule(add, seven, int64_t{1})), 8);  // it is there already
  coordinator.join();
  // A result that is an error: the function is cancelled, and the error is thrown once.
  const RemoteValue never = coordinator.schedule(add, coordinator.schedule(bad), int64_t{1});
  scheduled.open();  // not before: `schedule` throws what has failed already
  EXPECT_THAT(thrown<DataLossError>([&] { coordinator.join(); }), HasSubstr("no such row"));
  EXPECT_THROW(never.fetch(), CancelledError);
  coordinator.join();
  EXPECT_EQ(number(coordinator.schedule(add, int64_t{1}, int64_t{1})), 2);
}

TEST(ClusterCoordinator, SchedulesFunctionsOverTheProgramsOwnObjects) {
  TestingCluster cluster(2, 1);
  const ParameterServerStrategy strategy(cluster.resolver());
  const ClusterCoordinator coordinator(strategy);
  std::atomic<int64_t> sum{0};
  for (int64_t i = 0; i < 20; ++i) coordinator.schedule([&sum, i] { sum += i; });
  coordinator.join();
  EXPECT_EQ(sum, 190);
  EXPECT_EQ(number(coordinator.schedule([](int64_t x, int64_t y) { return x * y; }, int64_t{6},
                                        int64_t{7})),
            42);
  const auto iterator =
      coordinator.create_per_worker_dataset(Dataset::range(100).batch(1)).iterator();
  std::atomic<int> batches{0};
  for (int i = 0; i < 6; ++i) {
    coordinator.schedule(
        [&](DistributedIterator& it) {
          it.get_next();
          ++batches;
        },
        iterator);
  }
  coordinator.join();
  EXPECT_EQ(batches, 6);
  coordinator.schedule([] { throw OutOfRangeError("here"); });
  EXPECT_THAT(thrown<OutOfRangeError>([&] { coordinator.join(); }), HasSubstr("here"));
}

TEST(ClusterCoordinator, MakesDatasetsFromEveryForm) {
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

TEST(ClusterCoordinator, DatasetsSayWhatTheirElementsAre) {
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

TEST(ClusterCoordinator, DatasetsOfWorkersKeepTheirOptions) {
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
    return number(coordinator.schedule(
        [](DistributedIterator& it) {
          int64_t count = 0;
          while (it.next()) ++count;
          return count;
        },
        dataset.iterator()));
  };
  EXPECT_EQ(elements(data::AutoShardPolicy::DATA), 4);
  EXPECT_EQ(elements(data::AutoShardPolicy::OFF), 8);
}

class CoordinatorSummaries : public data::FilesTest {};

TEST_F(CoordinatorSummaries, ShowWhatTheClusterDoes) {
  TestingCluster cluster(2, 1);
  const ParameterServerStrategy strategy(cluster.resolver());
  const auto scope = strategy.scope();
  const Variable table(at::zeros({1000}), {.name = "table"});
  const Variable bias(at::zeros({10}), {.name = "bias"});
  const auto writer = summary::create_file_writer(directory);
  const auto read = [&] {
    writer.flush();
    return internal::read_events(internal::posix_file_system(), writer.path());
  };
  const auto values_of = [](const std::vector<internal::ReadEvent>& events, const char* tag) {
    std::vector<std::pair<int64_t, float>> values;
    for (const auto& event : events) {
      if (event.tag == tag) values.emplace_back(event.step, event.numbers<float>().at(0));
    }
    return values;
  };
  int64_t scheduled = 0;
  {
    const ClusterCoordinator coordinator(
        strategy, {.summary_writer = writer, .summary_every = std::chrono::milliseconds(5)});
    const auto deadline = std::chrono::steady_clock::now() + seconds(30);
    do {
      coordinator.schedule([&] { strategy.run([&] { bias.assign_add(at::ones({10})); }); });
      coordinator.join();
      ++scheduled;
    } while (values_of(read(), "ps 0/operations applied").size() < 2 &&
             std::chrono::steady_clock::now() < deadline);
  }
  const auto events = read();
  for (const auto& [step, bytes] : values_of(events, "ps 0/variable bytes")) {
    EXPECT_EQ(bytes, 4040);
  }
  EXPECT_EQ(values_of(events, "ps 0/bytes of table").at(0).second, 4000);
  EXPECT_EQ(values_of(events, "ps 0/bytes of bias").at(0).second, 40);
  EXPECT_GT(values_of(events, "ps 0/bytes received").back().second, 0);
  // The last ones are of the coordinator's end.
  const auto last = std::pair(scheduled, static_cast<float>(scheduled));
  EXPECT_EQ(values_of(events, "coordinator/closures done").back(), last);
  EXPECT_EQ(values_of(events, "coordinator/worker 0 done").back().second +
                values_of(events, "coordinator/worker 1 done").back().second,
            static_cast<float>(scheduled));
  for (const char* tag : {"coordinator/closures queued", "coordinator/closures in flight",
                          "coordinator/closures retried", "coordinator/worker 1 retried"}) {
    EXPECT_EQ(values_of(events, tag).back(), std::pair(scheduled, 0.f)) << tag;
  }
  EXPECT_FALSE(values_of(events, "coordinator/closures/s").empty());
}

// It would wait for itself, for hours.
TEST(ClusterCoordinator, AScheduledFunctionSchedulesJoinsAndSavesNothing) {
  TestingCluster cluster(2, 1);
  const ParameterServerStrategy strategy(cluster.resolver());
  auto scope = strategy.scope();
  const train::Checkpoint checkpoint({{"v", Variable(0.)}});
  scope.close();
  const ClusterCoordinator coordinator(strategy);
  const auto refused = [&](auto call, const char* name) {
    const RemoteValue value = coordinator.schedule([&] { call(); });
    EXPECT_THAT([&] { value.fetch(seconds(5)); },
                ::testing::ThrowsMessage<FailedPreconditionError>(
                    AllOf(HasSubstr(name), HasSubstr("in the coordinator's program"))));
    EXPECT_THROW(coordinator.join(seconds(5)), FailedPreconditionError);
  };
  refused([&] { coordinator.schedule([] { return 1; }); }, "schedule was called");
  refused([&] { coordinator.join(seconds(1)); }, "join was called");
  refused([&] { checkpoint.write(::testing::TempDir() + "in_closure", {.timeout = seconds(1)}); },
          "save was called");
  const RemoteValue first = coordinator.schedule([] { return 1; });
  EXPECT_EQ(number(coordinator.schedule([&] { return number(first) + 1; })), 2);
}

TEST(ClusterCoordinator, EachWorkerHasValuesOfItsOwn) {
  TestingCluster cluster(2, 1);
  const ParameterServerStrategy strategy(cluster.resolver());
  std::atomic<int> made{0};
  const auto make = strategy.function("make", [&made] {
    ++made;
    return tuple(at::full({}, 10 + coordinator::get_current_worker_index()), at::ones({}));
  });
  const auto fails =
      strategy.function("fails", []() -> Tensor { throw NotFoundError("no table"); });
  const auto minus = strategy.function("minus", [](const Tensor& own, const Tensor& one) {
    return own - one * coordinator::get_current_worker_index();
  });
  const auto offset = strategy.function("offset", [](double x, const Structure& own, double y) {
    return own[0].tensor() - coordinator::get_current_worker_index() + x - y;
  });
  const auto use = strategy.function("use", [](double x, const Tensor& y) { return y + x; });
  const ClusterCoordinator coordinator(strategy);
  const auto number = [](const RemoteValue& value) {
    return value.fetch().tensor().item<double>();
  };
  const auto value = coordinator.create_per_worker_value(make);
  for (int i = 0; i < 6; ++i) EXPECT_EQ(number(coordinator.schedule(minus, value)), 10);
  EXPECT_EQ(number(coordinator.schedule(offset, 5., value, 1.)), 14);
  const auto use_until = [&](const std::function<bool()>& condition) {
    const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (!condition() && std::chrono::steady_clock::now() < give_up) {
      EXPECT_EQ(number(coordinator.schedule(minus, value)), 10);
    }
    EXPECT_TRUE(condition());
  };
  use_until([&] { return made == 2; });
  const auto none = coordinator.create_per_worker_value(fails);
  coordinator.join();  // unused it harms nobody
  EXPECT_THAT(thrown<NotFoundError>([&] { coordinator.schedule(use, 1., none).fetch(); }),
              HasSubstr("no table"));
  EXPECT_ANY_THROW(coordinator.join());
  cluster.stop("worker", 1);
  use_until([&] { return !coordinator.workers()[1].is_alive; });
  cluster.start("worker", 1);
  use_until([&] { return made == 3; });  // again on the one that has come back
  const auto dataset = strategy.function("dataset", [] { return Dataset::range(4); });
  EXPECT_THAT(thrown<InvalidArgumentError>([&] { coordinator.create_per_worker_value(dataset); }),
              HasSubstr("create_per_worker_dataset"));
}

// Functions that have been scheduled with it still find it.
TEST(ClusterCoordinator, WorkersLetGoOfAValueWithItsLastHandle) {
  std::promise<void> gone;
  TestingCluster cluster(1, 1);
  const ParameterServerStrategy strategy(cluster.resolver());
  const auto make = strategy.function("make", [&gone] {
    return at::from_blob(new float[1]{7}, {1}, [&gone](void* memory) {
      delete[] static_cast<float*>(memory);
      gone.set_value();
    });
  });
  const auto twice = strategy.function("twice", [](const Tensor& value) { return value * 2; });
  const ClusterCoordinator coordinator(strategy);
  std::optional<coordinator::PerWorkerValue> value(coordinator.create_per_worker_value(make));
  EXPECT_EQ(coordinator.schedule(twice, *value).fetch().tensor().item<float>(), 14);
  std::future<void> end = gone.get_future();
  const RemoteValue later = coordinator.schedule(twice, *value);
  value.reset();
  EXPECT_EQ(later.fetch().tensor().item<float>(), 14);
  EXPECT_EQ(end.wait_for(seconds(20)), std::future_status::ready);
}

TEST(ClusterCoordinator, AnInputThatFailsIsTheErrorOfWhoUsesItAndOfNobodyElse) {
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

// Named or not, with a context or without, of either type, under the scope or outside of it.
TEST(ClusterCoordinator, NoDatasetFunctionMakesVariables) {
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
  // The worker makes variables again afterwards; a value of its own may have some, if they are its own, too.
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

// Three functions that work and one that fails; then one that takes long and is under way meanwhile.
TEST(ClusterCoordinator, TheErrorProtocolIsThatOfTheOriginal) {
  TestingCluster cluster(2, 1);
  const ParameterServerStrategy strategy(cluster.resolver());
  Gate gate;
  const auto good = strategy.function("good", [] { return 1; });
  const auto bad = strategy.function("bad", []() -> int { throw InvalidArgumentError("bad"); });
  const auto hold = strategy.function("hold", [&] { gate.pass(); });
  const auto read = strategy.function("read", [](DistributedIterator& it) { it.get_next(); });
  const ClusterCoordinator coordinator(strategy, {.window = 1});
  const auto iterator =
      coordinator.create_per_worker_dataset([] { return Dataset::range(1000).batch(1); })
          .iterator();
  for (int round = 0; round < 2; ++round) {
    for (int i = 0; i < 3; ++i) coordinator.schedule(good);
    coordinator.schedule(bad);
    EXPECT_THAT(thrown<InvalidArgumentError>([&] { coordinator.join(); }),
                MatchesRegex("'bad' on worker [01]: bad"));
    ASSERT_EQ(coordinator.errors().size(), 1u);
    EXPECT_EQ(coordinator.errors()[0].function, "bad");
    EXPECT_GE(coordinator.errors()[0].worker, 0);
  }
  // schedule in a loop throws it some time.
  coordinator.schedule(bad);
  EXPECT_THAT(thrown<InvalidArgumentError>([&] {
                while (true) coordinator.schedule(good);
              }),
              StartsWith("'bad' on worker "));
  const RemoteValue long_one = coordinator.schedule(hold);
  ASSERT_TRUE(gate.wait_for(1));
  coordinator.schedule(bad);
  std::thread program([&] {
    EXPECT_THAT(thrown<InvalidArgumentError>([&] { coordinator.join(); }),
                StartsWith("'bad' on worker "));
  });
  EXPECT_THAT(thrown<CancelledError>([&] { long_one.fetch(seconds(20)); }),
              AllOf(HasSubstr("Please reschedule"), HasSubstr("'hold' (closure "),
                    HasSubstr("'bad' (closure ")));
  gate.open();  // join waits for it: no function runs afterwards
  program.join();
  // Iterators can be used after the cancellation.
  for (int i = 0; i < 3; ++i) coordinator.schedule(read, iterator);
  coordinator.join();
  EXPECT_TRUE(coordinator.done());
}

TEST(ClusterCoordinator, TwoOfThreeWorkersMayDie) {
  TestingCluster cluster(3, 1);
  const ParameterServerStrategy strategy(cluster.resolver());
  std::atomic<int> runs{0};
  Gate gate;
  const ClusterCoordinator coordinator(strategy);
  std::vector<RemoteValue> values;
  for (int i = 0; i < 10; ++i) {
    values.push_back(coordinator.schedule([&]() -> int64_t {
      gate.pass();
      return ++runs;
    }));
  }
  ASSERT_TRUE(gate.wait_for(3));
  std::thread opener([&] {
    while (coordinator.workers()[2].is_alive) std::this_thread::yield();
    gate.open();
  });
  cluster.stop("worker", 2);  // a function is on it
  opener.join();
  cluster.stop("worker", 1);
  coordinator.join();
  EXPECT_GE(runs, 10);
  for (const RemoteValue& value : values) EXPECT_GE(number(value), 1);
}

// A thread of its own holds it a moment longer than the program: the next call of fit or evaluate must
// not take it for one of the program's.
TEST(ClusterCoordinator, IsForgottenOnceItHasStoppedWhoeverStillHoldsIt) {
  TestingCluster cluster(1, 1);
  const ParameterServerStrategy strategy(cluster.resolver());
  const auto core = strategy.parameter_server_core();
  const auto nothing = strategy.function("nothing", [] {});
  std::shared_ptr<internal::CoordinatorCore> held;
  {
    const ClusterCoordinator coordinator(strategy);
    coordinator.schedule(nothing);
    coordinator.join();
    held = core->coordinator();
    ASSERT_NE(held, nullptr);
    held->stop();
  }
  EXPECT_EQ(core->coordinator(), nullptr);
}

TEST(ClusterCoordinator, SumsOfShardsAreExactAlsoWhenAWorkerDies) {
  TestingCluster cluster(3, 1);
  const ParameterServerStrategy strategy(cluster.resolver());
  std::atomic<int> runs{0};
  Gate gate;
  const auto evaluate = strategy.function("evaluate", [&](int64_t shard, int64_t num_shards) {
    if (++runs <= 3) gate.pass();
    int64_t count = 0, sum = 0;
    for (const Structure& element : Dataset::range(1000).shard(num_shards, shard)) {
      ++count;
      sum += element.tensor().item<int64_t>();
    }
    return dict({{"count", count}, {"sum", sum}});
  });
  const ClusterCoordinator coordinator(strategy, {.window = 1});
  std::thread killer([&] {
    if (!gate.wait_for(3)) return;
    std::thread opener([&] {
      while (coordinator.workers()[1].is_alive) std::this_thread::yield();
      gate.open();
    });
    cluster.stop("worker", 1);  // a shard is on it
    opener.join();
  });
  const Structure totals = coordinator.sum_over_shards(evaluate, 16);
  killer.join();
  EXPECT_EQ(totals["count"].tensor().item<int64_t>(), 1000);
  EXPECT_EQ(totals["sum"].tensor().item<int64_t>(), 499500);
  EXPECT_GE(runs, 16);
  EXPECT_THROW(coordinator.sum_over_shards(evaluate, 0), InvalidArgumentError);
}

}  // namespace
}  // namespace cohort::distribute
