// What each worker keeps for the closures that run on it, and how the program reads it, on an
// in-process cluster.
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <exception>
#include <map>
#include <string>
#include <vector>

#include "cohort/cluster/rpc/error_detail.h"
#include "cohort/core/error.h"
#include "cohort/core/structure/string_tensor.h"
#include "cohort/core/testing_errors.h"
#include "cohort/data/dataset.h"
#include "cohort/distribute/input/distributed_iterator.h"
#include "cohort/parameter_server/cluster_coordinator.h"
#include "cohort/parameter_server/parameter_server_strategy.h"
#include "cohort/parameter_server/testing_cluster.h"

namespace cohort::distribute {
namespace {

using coordinator::ClusterCoordinator;
using coordinator::get_current_worker_index;
using std::chrono::seconds;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(WorkerValues, AreReadByWorker) {
  TestingCluster cluster(3, 1);
  const ParameterServerStrategy strategy(cluster.resolver());
  const auto make = strategy.function("make", [] {
    const int worker = get_current_worker_index();
    return tuple(worker * 10, dict({{"name", StringTensor({std::to_string(worker)})}}));
  });
  const ClusterCoordinator coordinator(strategy);
  const auto values = coordinator.fetch(coordinator.create_per_worker_value(make));
  ASSERT_EQ(values.size(), 3u);
  for (int worker = 0; worker < 3; ++worker) {
    const Structure& value = values[static_cast<size_t>(worker)];
    EXPECT_EQ(value[0].tensor().item<int>(), worker * 10);
    EXPECT_EQ(value[1]["name"].strings()[0], std::to_string(worker));
  }
}

// TensorFlow's testPerWorkerValue, with sums that closures add up where they run.
TEST(WorkerValues, HoldWhatClosuresAddUpInThem) {
  TestingCluster cluster(2, 1);
  const ParameterServerStrategy strategy(cluster.resolver());
  const auto zero = strategy.function("zero", [] { return at::zeros({}); });
  const auto add = strategy.function("add", [](const Tensor& sum) { sum.add_(1); });
  const ClusterCoordinator coordinator(strategy);
  const auto sums = coordinator.create_per_worker_value(zero);
  for (int i = 0; i < 10; ++i) coordinator.schedule(add, sums);
  coordinator.join();
  double total = 0;
  for (const Structure& sum : coordinator.fetch(sums)) total += sum.tensor().item<double>();
  EXPECT_EQ(total, 10);
}

// Sent in many pieces, while what is queued behind writes to them.
TEST(WorkerValues, AreCopiesThatNoLaterClosureChanges) {
  constexpr int kClosures = 8, kElements = 1 << 18;
  TestingCluster cluster(1, 1);
  const ParameterServerStrategy strategy(cluster.resolver());
  const auto zeros = strategy.function("zeros", [] { return at::zeros({kElements}); });
  const auto add = strategy.function("add", [](const Tensor& sum) { return sum.add_(1); });
  const auto add_to_own = strategy.function("add_to_own", [](const Tensor& sum) { sum.add_(1); });
  const ClusterCoordinator coordinator(strategy);
  const auto sums = coordinator.create_per_worker_value(zeros);
  std::vector<coordinator::RemoteValue> returned;
  for (int i = 0; i < kClosures; ++i) returned.push_back(coordinator.schedule(add, sums));
  for (int i = 0; i < kClosures; ++i) {
    const Tensor sum = returned[static_cast<size_t>(i)].fetch(seconds(20)).tensor();
    EXPECT_EQ(sum.min().item<int>(), i + 1);
    EXPECT_EQ(sum.max().item<int>(), i + 1);
  }
  for (int i = 0; i < kClosures; ++i) coordinator.schedule(add_to_own, sums);
  while (!coordinator.done()) {
    const Tensor sum = coordinator.fetch(sums, seconds(20))[0].tensor();
    EXPECT_EQ(sum.min().item<int>(), sum.max().item<int>());
  }
}

TEST(WorkerValues, OfAWorkerThatComesBackAreReadThen) {
  TestingCluster cluster(2, 1);
  const ParameterServerStrategy strategy(cluster.resolver());
  std::atomic<int> made{0};
  const auto make = strategy.function("make", [&] { return ++made; });
  const ClusterCoordinator coordinator(strategy);
  const auto value = coordinator.create_per_worker_value(make);
  coordinator.fetch(value);
  cluster.stop("worker", 1);
  EXPECT_THROW(coordinator.fetch(value, std::chrono::milliseconds(10)), DeadlineExceededError);
  cluster.start("worker", 1);
  const auto values = coordinator.fetch(value, seconds(20));
  EXPECT_GT(values[1].tensor().item<int>(), 2);  // made again
}

TEST(WorkerValues, ThatCannotBeMadeAreAnErrorOfWhoReadsThem) {
  TestingCluster cluster(1, 1);
  const ParameterServerStrategy strategy(cluster.resolver());
  const auto fails = strategy.function("fails", []() -> Tensor { throw NotFoundError("no row"); });
  const auto undefined = strategy.function("undefined", [] { return Tensor(); });
  const ClusterCoordinator coordinator(strategy);
  const auto value = coordinator.create_per_worker_value(fails);
  EXPECT_THAT(thrown<NotFoundError>([&] { coordinator.fetch(value); }),
              AllOf(HasSubstr("worker 0"), HasSubstr("'fails'"), HasSubstr("no row")));
  EXPECT_THROW(coordinator.fetch(value), coordinator::ClosureInputError);
  EXPECT_THAT(thrown<InvalidArgumentError>(
                  [&] { coordinator.fetch(coordinator.create_per_worker_value(undefined)); }),
              HasSubstr("'undefined' returned an undefined tensor"));
  coordinator.join();
}

TEST(WorkerValues, ErrorsOfLibtorchInWhatMakesThemHaveTheirClass) {
  const TestingCluster cluster(1, 1);
  const ParameterServerStrategy strategy(cluster.resolver());
  const auto misfit = [] { return at::zeros({2, 3}).matmul(at::zeros({2, 3})); };
  const auto value = strategy.function("value", misfit);
  const auto data =
      strategy.function("data", [&] { return data::Dataset::from_tensors(misfit()); });
  const auto read = strategy.function("read", [](DistributedIterator& it) { it.get_next(); });
  const ClusterCoordinator coordinator(strategy);
  const auto dataset = coordinator.create_per_worker_dataset(data);
  const auto says_what = [](const char* function) {
    return AllOf(HasSubstr(function), HasSubstr("shapes cannot be multiplied"),
                 Not(HasSubstr("frame #")));
  };
  EXPECT_THAT(thrown<InvalidArgumentError>([&] {
                coordinator.fetch(coordinator.create_per_worker_value(value), seconds(20));
              }),
              says_what("'value'"));
  EXPECT_THAT(thrown<InvalidArgumentError>(
                  [&] { coordinator.schedule(read, dataset.iterator()).fetch(seconds(20)); }),
              says_what("'data'"));
  EXPECT_THAT(thrown<InvalidArgumentError>([&] { dataset.element_spec(); }), says_what("data"));
}

// Also where a ps task that lives does not answer the worker, however often it tries.
TEST(WorkerValues, ThatNeedAPsTaskOutOfReachAreAnErrorAtLast) {
  TestingCluster cluster(1, 1);
  const ParameterServerStrategy strategy(cluster.resolver());
  std::atomic<int> attempts{0};
  const auto reads = strategy.function("reads", [&]() -> Tensor {
    ++attempts;
    std::rethrow_exception(internal::rpc::make_error(Code::kUnavailable, "no route", "",
                                                     {.peer = to_string(TaskId{"ps", 0})}));
  });
  const auto use = strategy.function("use", [](const Tensor& own) { return own; });
  const ClusterCoordinator coordinator(strategy, {.max_closure_attempts = 2});
  const auto value = coordinator.create_per_worker_value(reads);
  EXPECT_THAT(thrown<UnavailableError>([&] { coordinator.fetch(value, seconds(20)); }),
              AllOf(HasSubstr("could not be made by 'reads'"), HasSubstr("no route")));
  EXPECT_THROW(coordinator.schedule(use, value).fetch(seconds(20)), coordinator::ClosureInputError);
  EXPECT_EQ(attempts, 2);
  EXPECT_TRUE(coordinator.workers()[0].is_alive);
}

TEST(WorkerValues, OfALostClusterEndWithItsError) {
  TestingCluster cluster(1, 1);
  const ParameterServerStrategy strategy(cluster.resolver());
  const auto one = strategy.function("one", [] { return 1; });
  const ClusterCoordinator coordinator(strategy);
  const auto value = coordinator.create_per_worker_value(one);
  cluster.stop("worker", 0);
  cluster.stop("ps", 0);
  EXPECT_THROW(coordinator.fetch(value, seconds(20)), coordinator::PSUnavailableError);
}

TEST(WorkerValues, OfALostWorkerAreNotReadInTimeAndItIsNamed) {
  TestingCluster cluster(2, 1);
  const ParameterServerStrategy strategy(cluster.resolver());
  const auto one = strategy.function("one", [] { return 1; });
  const ClusterCoordinator coordinator(strategy);
  const auto value = coordinator.create_per_worker_value(one);
  coordinator.fetch(value, seconds(20));
  cluster.stop("worker", 1);
  EXPECT_THAT(thrown<DeadlineExceededError>([&] { coordinator.fetch(value, seconds(1)); }),
              AllOf(HasSubstr("fetch of worker 1's value has not ended in time: worker 1 is lost"),
                    HasSubstr(" s (")));
}

TEST(WorkerValues, AreReadByTheirOwnCoordinatorsProgram) {
  const TestingCluster cluster(1, 1), other_cluster(1, 1);
  const ParameterServerStrategy strategy(cluster.resolver()), other(other_cluster.resolver());
  const auto one = strategy.function("one", [] { return 1; });
  const ClusterCoordinator coordinator(strategy), of_other(other);
  const auto value = coordinator.create_per_worker_value(one);
  EXPECT_THAT(thrown<InvalidArgumentError>([&] { of_other.fetch(value); }),
              HasSubstr("that another ClusterCoordinator has made"));
  coordinator.schedule([&] { coordinator.fetch(value); });
  EXPECT_THAT(thrown<FailedPreconditionError>([&] { coordinator.join(seconds(20)); }),
              HasSubstr("in the coordinator's program"));
}

// Of any type, where functions refer to them: only one function at a time runs on a worker.
TEST(WorkerValues, MayStandForObjectsOfTheWorker) {
  TestingCluster cluster(2, 1);
  const ParameterServerStrategy strategy(cluster.resolver());
  std::vector<std::map<int64_t, int>> tables(2);  // of each worker of this process
  const auto own = [&]() -> auto& {
    return tables[static_cast<size_t>(get_current_worker_index())];
  };
  const auto make = strategy.function("make", [&] {
    own() = {{get_current_worker_index(), 0}};
    return 0;
  });
  const auto count = strategy.function("count", [&](int64_t) { ++own().begin()->second; });
  const ClusterCoordinator coordinator(strategy);
  const auto made = coordinator.create_per_worker_value(make);
  for (int i = 0; i < 10; ++i) coordinator.schedule(count, made);
  coordinator.join();
  coordinator.fetch(made);  // both workers have one
  EXPECT_EQ(tables[0].at(0) + tables[1].at(1), 10);
}

}  // namespace
}  // namespace cohort::distribute
