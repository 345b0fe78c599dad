// What scheduled functions take: structures, results of others, and what cannot be sent.
#include <ATen/ops/from_blob.h>
#include <ATen/ops/ones.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>

#include "cohort/core/error.h"
#include "cohort/core/testing_errors.h"
#include "cohort/parameter_server/cluster_coordinator.h"
#include "cohort/parameter_server/parameter_server_strategy.h"
#include "cohort/parameter_server/testing_cluster.h"
#include "cohort/parameter_server/testing_gate.h"

namespace cohort::distribute {
namespace {

using coordinator::ClusterCoordinator;
using coordinator::RemoteValue;
using coordinator::RemoteValueStatus;
using data::Dataset;
using std::chrono::seconds;
using ::testing::HasSubstr;

int64_t fetched_number(const RemoteValue& value) { return value.fetch().tensor().item<int64_t>(); }

// As Strategy::run does.
TEST(CoordinatorArguments, OneStructureIsTheFunctionsInput) {
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
  EXPECT_EQ(fetched_number(coordinator.schedule(by_name, x)), in_step.value(0).item<int64_t>());
  EXPECT_EQ(fetched_number(coordinator.schedule(of_dict, x)), 23);
  EXPECT_EQ(fetched_number(coordinator.schedule(by_name, coordinator.schedule(make))), 78);
  EXPECT_EQ(fetched_number(coordinator.schedule(minus, tuple(5, 3))), 2);
  EXPECT_EQ(fetched_number(coordinator.schedule(minus, int64_t{5}, int64_t{3})), 2);
  EXPECT_EQ(fetched_number(coordinator.schedule(sum, x, x)), 4);
  const auto iterator =
      coordinator.create_per_worker_dataset([] { return Dataset::range(5, 9).batch(1); })
          .iterator();
  EXPECT_EQ(fetched_number(coordinator.schedule(shifted, iterator, x)), 7);
}

TEST(CoordinatorArguments, AResultIsAnArgumentOfALaterFunction) {
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
  EXPECT_EQ(fetched_number(ten), 10);
  EXPECT_EQ(fetched_number(coordinator.schedule(add, seven, int64_t{1})),
            8);  // it is there already
  coordinator.join();
  // A result that is an error: the function is cancelled, and the error is thrown once.
  const RemoteValue never = coordinator.schedule(add, coordinator.schedule(bad), int64_t{1});
  scheduled.open();  // not before: `schedule` throws what has failed already
  EXPECT_THAT(thrown<DataLossError>([&] { coordinator.join(); }), HasSubstr("no such row"));
  EXPECT_THROW(never.fetch(), CancelledError);
  coordinator.join();
  EXPECT_EQ(fetched_number(coordinator.schedule(add, int64_t{1}, int64_t{1})), 2);
}

// Each takes the result of the one before.
TEST(CoordinatorArguments, AFunctionThatFailsIsNamedOnceToALongChainThatTakesItsResult) {
  constexpr int kMany = 2000;
  TestingCluster cluster(2, 1);
  const ParameterServerStrategy strategy(cluster.resolver());
  const auto add_one = strategy.function("add_one", [](int64_t x) { return x + 1; });
  Gate scheduled;
  const auto fails = strategy.function("fails", [&]() -> int64_t {
    scheduled.pass();
    throw DataLossError("the root");
  });
  const ClusterCoordinator coordinator(strategy);
  RemoteValue last = coordinator.schedule(fails);
  for (int i = 0; i < kMany; ++i) last = coordinator.schedule(add_one, last);
  scheduled.open();
  const auto names_it_once = [](const RemoteValue& value) {
    const std::string text = thrown<CancelledError>([&] { value.fetch(seconds(20)); });
    const size_t first = text.find("the root");
    EXPECT_NE(first, std::string::npos) << text;
    EXPECT_EQ(text.find("the root", first + 1), std::string::npos) << text;
    EXPECT_LT(text.size(), 500u) << text;
  };
  names_it_once(last);
  EXPECT_THAT(thrown<DataLossError>([&] { coordinator.join(); }), HasSubstr("the root"));
  // What takes one of them later is told the same.
  for (int i = 0; i < 5; ++i) last = coordinator.schedule(add_one, last);
  names_it_once(last);
  EXPECT_THAT(thrown<CancelledError>([&] { last.fetch(seconds(20)); }),
              HasSubstr("because of one 4 functions before it"));
  coordinator.join();
}

TEST(CoordinatorArguments, TensorsAreThoseOfTheMomentOfTheCall) {
  TestingCluster cluster(1, 1);
  const ParameterServerStrategy strategy(cluster.resolver());
  Gate gate;
  const auto wait = strategy.function("wait", [&] { gate.pass(); });
  const auto same = strategy.function("same", [](int64_t x) { return x; });
  const ClusterCoordinator coordinator(strategy);
  for (int i = 0; i < 3; ++i) coordinator.schedule(wait);  // more than a worker has at a time
  ASSERT_TRUE(gate.wait_for(1));
  const Tensor number = at::ones({}, int64);
  const RemoteValue one = coordinator.schedule(same, number);
  number.fill_(2);
  int64_t foreign = 2;
  const RemoteValue two = coordinator.schedule(same, at::from_blob(&foreign, {}, int64));
  number.fill_(3);
  foreign = 3;
  gate.open();
  EXPECT_EQ(fetched_number(one), 1);
  EXPECT_EQ(fetched_number(two), 2);
}

// Each fetch is a copy.
TEST(CoordinatorArguments, AResultStaysAsItIsWhateverIsWrittenToWhatWasFetched) {
  TestingCluster cluster(1, 1);
  const ParameterServerStrategy strategy(cluster.resolver());
  const auto same = strategy.function("same", [](int64_t x) { return x; });
  const ClusterCoordinator coordinator(strategy);
  const RemoteValue one = coordinator.schedule(same, int64_t{1});
  one.fetch().tensor().fill_(7);
  EXPECT_EQ(fetched_number(one), 1);
  EXPECT_EQ(fetched_number(coordinator.schedule(same, one)), 1);
}

TEST(CoordinatorArguments, ScheduleRefusesArgumentsThatCannotBeSent) {
  const TestingCluster cluster(1, 1);
  const ParameterServerStrategy strategy(cluster.resolver());
  const auto one = strategy.function("one", [](const Structure&) { return 1; });
  const ClusterCoordinator coordinator(strategy);
  EXPECT_THAT(thrown<InvalidArgumentError>([&] { coordinator.schedule(one, Tensor()); }),
              HasSubstr("schedule: argument [0] of 'one' is an undefined tensor"));
  EXPECT_THAT(thrown<InvalidArgumentError>([&] {
                coordinator.schedule(one, dict({{"a", at::ones({})}, {"b", Tensor()}}));
              }),
              HasSubstr("schedule: argument [0]['b'] of 'one' is an undefined tensor"));
  EXPECT_THAT(thrown<UnimplementedError>([&] {
                coordinator.schedule(one, at::ones({2, 2}).to_sparse());
              }),
              HasSubstr("schedule: argument [0] of 'one' is a sparse tensor"));
  coordinator.join();  // nothing was queued
}

}  // namespace
}  // namespace cohort::distribute
