// What becomes of a closure whose function returns what it cannot, or does not return.
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pthread.h>

#include <chrono>
#include <semaphore>
#include <string>

#include "cohort/core/error.h"
#include "cohort/core/testing_errors.h"
#include "cohort/data/dataset.h"
#include "cohort/distribute/input/distributed_iterator.h"
#include "cohort/distribute/input/input_context.h"
#include "cohort/parameter_server/cluster_coordinator.h"
#include "cohort/parameter_server/parameter_server_strategy.h"
#include "cohort/parameter_server/testing_cluster.h"

namespace cohort::distribute {
namespace {

using coordinator::ClusterCoordinator;
using coordinator::RemoteValue;
using ::testing::AllOf;
using ::testing::HasSubstr;

class ClosureEndTest : public ::testing::Test {
 protected:
  // The error of the function, and that the same worker runs others afterwards.
  std::string error_of(const WorkerFunction& function) const {
    const ClusterCoordinator coordinator(strategy_);
    const RemoteValue failed = coordinator.schedule(function);
    const std::string text = thrown<Error>([&] { failed.fetch(std::chrono::seconds(20)); });
    EXPECT_THROW(coordinator.join(), Error);
    EXPECT_EQ(coordinator.schedule(good_).fetch(std::chrono::seconds(20)).tensor().item<int>(), 1);
    return text;
  }

  TestingCluster cluster_{1, 1};
  const ParameterServerStrategy strategy_{cluster_.resolver()};
  const WorkerFunction good_ = strategy_.function("good", [] { return 1; });
};

TEST_F(ClosureEndTest, AnUndefinedTensorIsNamedWithTheFunction) {
  const auto alone = strategy_.function("alone", [] { return Tensor(); });
  const auto among = strategy_.function("among", [] {
    return dict({{"loss", at::zeros({})}, {"rest", tuple(at::zeros({2}), Tensor())}});
  });
  EXPECT_THAT(error_of(alone),
              AllOf(HasSubstr("'alone' returned an undefined tensor"), HasSubstr("as its result")));
  EXPECT_THAT(error_of(among), AllOf(HasSubstr("'among' returned an undefined tensor"),
                                     HasSubstr("as output ['rest'][1]")));
}

TEST_F(ClosureEndTest, WhatIsThrownNeedBeNoException) {
  const auto outside = strategy_.function("outside", [] { throw 7; });
  const auto in_step = strategy_.function("in_step", [this] { strategy_.run([] { throw 7; }); });
  const auto makes_value = strategy_.function("makes_value", []() -> int { throw 7; });
  const auto use = strategy_.function("use", [](int64_t x) { return x; });
  EXPECT_THAT(error_of(outside), AllOf(HasSubstr("'outside' on worker 0"),
                                       HasSubstr("an exception that is no std::exception")));
  EXPECT_THAT(error_of(in_step), AllOf(HasSubstr("'in_step' on worker 0"),
                                       HasSubstr("an exception that is no std::exception")));
  const ClusterCoordinator coordinator(strategy_);
  const auto value = coordinator.create_per_worker_value(makes_value);
  EXPECT_THAT(thrown<UnknownError>(
                  [&] { coordinator.schedule(use, value).fetch(std::chrono::seconds(20)); }),
              HasSubstr("could not be made by 'makes_value'"));
}

TEST_F(ClosureEndTest, AFunctionMayEndItsThread) {
  const auto outside = strategy_.function("outside", [] { pthread_exit(nullptr); });
  const auto in_step =
      strategy_.function("in_step", [this] { strategy_.run([] { pthread_exit(nullptr); }); });
  EXPECT_THAT(error_of(outside), AllOf(HasSubstr("'outside'"), HasSubstr("pthread_exit")));
  EXPECT_THAT(error_of(in_step), AllOf(HasSubstr("'in_step'"), HasSubstr("pthread_exit")));
}

// Those behind it in the worker's window run, too.
TEST_F(ClosureEndTest, ClosuresBehindOneThatEndsItsThreadRun) {
  std::binary_semaphore all_scheduled{0};  // `schedule` throws the error of one that has ended
  const auto ends = strategy_.function("ends", [&] {
    EXPECT_TRUE(all_scheduled.try_acquire_for(std::chrono::seconds(20)));
    pthread_exit(nullptr);
  });
  const ClusterCoordinator coordinator(strategy_, {.window = 4});
  for (int i = 0; i < 3; ++i) {
    coordinator.schedule(ends);
    for (int k = 0; k < 3; ++k) coordinator.schedule(good_);
    all_scheduled.release();
    EXPECT_THAT(
        thrown<FailedPreconditionError>([&] { coordinator.join(std::chrono::seconds(20)); }),
        HasSubstr("pthread_exit"));
  }
}

TEST_F(ClosureEndTest, AFunctionThatMakesAnInputMayEndItsThread) {
  const auto ends = strategy_.function("ends", [](const InputContext&) -> data::Dataset {
    pthread_exit(nullptr);
    return data::Dataset::range(1);
  });
  const auto use = strategy_.function("use", [](DistributedIterator& it) { it.get_next(); });
  const ClusterCoordinator coordinator(strategy_);
  const auto iterator = coordinator.create_per_worker_dataset(ends).iterator();
  const RemoteValue failed = coordinator.schedule(use, iterator);
  EXPECT_THAT(thrown<FailedPreconditionError>([&] { failed.fetch(std::chrono::seconds(20)); }),
              HasSubstr("pthread_exit"));
  EXPECT_THROW(coordinator.join(), Error);
}

}  // namespace
}  // namespace cohort::distribute
