// A coordinator's public face, on an in-process cluster.
#include "cohort/parameter_server/cluster_coordinator.h"

#include <ATen/ops/from_blob.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/tensor.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <future>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "cohort/core/error.h"
#include "cohort/core/files/simulated_file_system.h"
#include "cohort/core/observe/monitoring.h"
#include "cohort/core/structure/string_tensor.h"
#include "cohort/core/testing_errors.h"
#include "cohort/parameter_server/coordinator/coordinator_core.h"
#include "cohort/parameter_server/coordinator/remote_result.h"
#include "cohort/parameter_server/parameter_server_core.h"
#include "cohort/parameter_server/parameter_server_strategy.h"
#include "cohort/parameter_server/testing_cluster.h"
#include "cohort/parameter_server/testing_gate.h"
#include "cohort/train/checkpoint.h"

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

TEST(RemoteValue, OfNoFunctionSaysSo) {
  RemoteValue value;
  EXPECT_FALSE(value);
  EXPECT_THAT(thrown<FailedPreconditionError>([&] { value.fetch(); }),
              HasSubstr("assign what schedule() returns"));
  EXPECT_THROW(value.status(), FailedPreconditionError);
  const auto result = std::make_shared<internal::RemoteResult>();
  result->set(at::tensor({7}, int64));
  value = RemoteValue(result);
  EXPECT_TRUE(value);
  EXPECT_EQ(value.fetch().tensor().item<int64_t>(), 7);
}

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

TEST(ClusterCoordinator, TimeoutsMayBeAsLongAsTheyGo) {
  constexpr std::chrono::milliseconds kForEver = std::chrono::milliseconds::max();
  TestingCluster cluster(1, 1);
  const ParameterServerStrategy strategy(cluster.resolver(), {.timeout = kForEver});
  auto scope = strategy.scope();
  const Variable v(1.);
  scope.close();
  const auto read = strategy.function("read", [&] { return v.assign_add(1.).value(); });
  const coordinator::ClusterCoordinatorOptions options{.closure_timeout = kForEver,
                                                       .max_recovery = kForEver,
                                                       .worker_pause = kForEver,
                                                       .ps_grace = kForEver,
                                                       .report_after = kForEver,
                                                       .summary_every = kForEver};
  const ClusterCoordinator coordinator(strategy, options);
  const RemoteValue value = coordinator.schedule(read);
  EXPECT_EQ(value.fetch(kForEver).tensor().item<float>(), 2);
  coordinator.join(kForEver);
  const ClusterCoordinator again(strategy, options);
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

TEST(ClusterCoordinator, AFetchThatIsOverdueNamesTheFunctionAndWhereItRuns) {
  TestingCluster cluster(1, 1);
  const ParameterServerStrategy strategy(cluster.resolver());
  Gate gate;
  const auto hold = strategy.function("hold", [&] { gate.pass(); });
  const ClusterCoordinator coordinator(strategy);
  const RemoteValue held = coordinator.schedule(hold);
  ASSERT_TRUE(gate.wait_for(1));
  EXPECT_THAT(
      thrown<DeadlineExceededError>([&] { held.fetch(std::chrono::milliseconds(50)); }),
      AllOf(StartsWith("fetch of 'hold' (closure 1) has not ended in time: worker 0 has had it"),
            HasSubstr("worker 0 runs 'hold'")));
  gate.open();
  coordinator.join();
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

// It would wait for itself, for hours.
TEST(ClusterCoordinator, AScheduledFunctionSchedulesJoinsAndSavesNothing) {
  TestingCluster cluster(2, 1);
  const ParameterServerStrategy strategy(cluster.resolver());
  auto scope = strategy.scope();
  const train::Checkpoint checkpoint({{"v", Variable(0.)}});
  scope.close();
  internal::SimulatedFileSystem files;  // one writer a directory: another test may write there
  internal::use_file_system(checkpoint, files);
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
  refused([&] { coordinator.done(); }, "done was called");
  refused([&] { checkpoint.write("dir/in_closure", {.timeout = seconds(1)}); }, "save was called");
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

// It is no closure, which would count once: each worker's run counts.
TEST(ClusterCoordinator, WhatMakesAWorkersValueChangesVariablesEachTime) {
  TestingCluster cluster(2, 1);
  const ParameterServerStrategy strategy(cluster.resolver());
  auto scope = strategy.scope();
  const Variable count(0, {.name = "count", .aggregation = VariableAggregation::SUM});
  scope.close();
  const auto nothing = strategy.function("nothing", [] {});
  const auto make = strategy.function("make", [&] {
    for (int i = 0; i < 2; ++i) strategy.run([&] { count.assign_add(1); });
    count.assign_add(1);
    return at::ones({});
  });
  const auto use = strategy.function(
      "use", [](const Tensor&) { return coordinator::get_current_worker_index(); });
  const ClusterCoordinator coordinator(strategy, {.window = 1});
  coordinator.schedule(nothing).fetch();  // workers know a watermark
  const auto value = coordinator.create_per_worker_value(make);
  std::vector<bool> has_run(2);
  const auto give_up = std::chrono::steady_clock::now() + seconds(30);
  while (!(has_run[0] && has_run[1]) && std::chrono::steady_clock::now() < give_up) {
    has_run[static_cast<size_t>(number(coordinator.schedule(use, value)))] = true;
  }
  EXPECT_EQ(count.value().item<int64_t>(), 6);
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

// Three functions that work and one that fails; then one that takes long and is under way
// meanwhile.
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
    EXPECT_EQ(coordinator.errors()[0].closure, uint64_t(4 * round + 4));
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

// A thread of its own holds it a moment longer than the program: the next call of fit or evaluate
// must not take it for one of the program's.
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
    held = core->leader()->coordinator();
    ASSERT_NE(held, nullptr);
    held->stop();
  }
  EXPECT_EQ(core->leader()->coordinator(), nullptr);
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

// Its number says something else to the workers, or nothing.
TEST(ClusterCoordinator, TakesInputsOfItsOwnOnly) {
  const TestingCluster cluster(1, 1), other_cluster(1, 1);
  const ParameterServerStrategy strategy(cluster.resolver()), other(other_cluster.resolver());
  const auto range = [](const ClusterCoordinator& coordinator) {
    return coordinator.create_per_worker_dataset([] { return Dataset::range(9); }).iterator();
  };
  std::optional<ClusterCoordinator> coordinator(strategy);
  const ClusterCoordinator of_other(other);
  const auto iterator = range(*coordinator);
  const auto value =
      coordinator->create_per_worker_value(strategy.function("two", [] { return 2; }));
  const auto next = [](DistributedIterator& it) { return it.get_next().value(0); };
  const auto says_whose = HasSubstr("that another ClusterCoordinator has made");
  EXPECT_THAT(thrown<InvalidArgumentError>([&] { of_other.schedule(next, iterator); }), says_whose);
  EXPECT_THAT(
      thrown<InvalidArgumentError>([&] { of_other.schedule([](int64_t x) { return x; }, value); }),
      says_whose);
  of_other.join();
  coordinator.reset();
  coordinator.emplace(strategy);
  EXPECT_THAT(thrown<InvalidArgumentError>([&] { coordinator->schedule(next, iterator); }),
              says_whose);
  coordinator->schedule(next, range(*coordinator)).fetch();
}

TEST(ClusterCoordinator, TotalsOfShardsThatDoNotAddUpAreRefused) {
  const TestingCluster cluster(1, 1);
  const ParameterServerStrategy strategy(cluster.resolver());
  const ClusterCoordinator coordinator(strategy);
  const auto refused = [&](const std::string& name, const Structure& first,
                           const Structure& other) {
    const auto function =
        strategy.function(name, [=](int64_t shard, int64_t) { return shard == 0 ? first : other; });
    return thrown<InvalidArgumentError>([&] { coordinator.sum_over_shards(function, 2); });
  };
  const Structure one(at::ones({}));
  EXPECT_THAT(refused("forms", dict({{"a", one}}), dict({{"b", one}})),
              AllOf(StartsWith("sum_over_shards: the totals that 'forms' returned for shards 0"),
                    HasSubstr("differ in form at")));
  EXPECT_THAT(
      refused("shapes", Structure(at::ones({2})), Structure(at::ones({1}))),
      AllOf(StartsWith("sum_over_shards: the totals that 'shapes' returned hold float32 [2]"),
            HasSubstr("float32 [1] for shard 1")));
  EXPECT_THAT(
      refused("truths", Structure(at::ones({}, at::kBool)), one),
      AllOf(HasSubstr("'truths' returned for shard 0 hold truth values"), HasSubstr("numbers")));
  EXPECT_THAT(refused("strings", one, Structure(StringTensor({"a"}))), HasSubstr("'strings'"));
}

}  // namespace
}  // namespace cohort::distribute
