// Steps that fail, and calls of run that are refused.
#include <ATen/ops/ones.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <thread>

#include "cohort/distribute/strategies/replica_context.h"
#include "cohort/distribute/testing_devices.h"
#include "cohort/distribute/testing_errors.h"
#include "cohort/distribute/testing_numbers.h"

namespace cohort::distribute {
namespace {

using std::chrono::milliseconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

PerReplica<int> ids(const Strategy& strategy) {
  return strategy.run([](ReplicaContext& context) { return context.replica_id_in_sync_group(); });
}

// As ids, once the replicas of a step that was given up have returned.
std::optional<PerReplica<int>> ids_when_returned(const Strategy& strategy) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (std::chrono::steady_clock::now() < deadline) {
    try {
      return ids(strategy);
    } catch (const FailedPreconditionError&) {
      std::this_thread::yield();
    }
  }
  return std::nullopt;
}

TEST(StrategyRun, AnErrorInOneReplicaKeepsItsClassAndTheStrategyUsable) {
  const MirroredStrategy strategy = mirrored(3);
  for (const bool meet : {false, true}) {
    EXPECT_EQ(thrown<OutOfRangeError>([&] {
                strategy.run([&](ReplicaContext& context) {
                  if (context.replica_id_in_sync_group() == 1) throw OutOfRangeError("mine");
                  if (meet) context.merge_call([](Strategy&) {});
                });
              }),
              "replica 1: mine");
    EXPECT_THAT(ids(strategy).values(), ElementsAre(0, 1, 2));
  }
}

TEST(StrategyRun, AnEmptyFunctionIsRefused) {
  const MirroredStrategy strategy = mirrored(2);
  EXPECT_THAT(refused([&] { strategy.run(std::function<void()>()); }), HasSubstr("empty function"));
  const std::function<Tensor(const Tensor&)> none;
  EXPECT_THAT(refused([&] { strategy.run(RunOptions{}, none, at::ones({2})); }),
              HasSubstr("empty function"));
  using Step = int (*)();
  EXPECT_THAT(refused([&] { strategy.run(Step(nullptr)); }), HasSubstr("empty function"));
  EXPECT_THAT(strategy.run(Step([] { return 3; })).values(), ElementsAre(3, 3));
  EXPECT_THAT(strategy.run(std::function<int()>([] { return 4; })).values(), ElementsAre(4, 4));
}

TEST(StrategyRun, OfSeveralErrorsTheFirstReplicasIsThrown) {
  const MirroredStrategy strategy = mirrored(2);
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(thrown<NotFoundError>([&] {
                strategy.run([](ReplicaContext& context) {
                  throw NotFoundError(internal::str(context.replica_id_in_sync_group()));
                });
              }),
              "replica 0: 0");
  }
}

TEST(StrategyRun, DifferentNumbersOfMergeCallsAreAnErrorThatNamesTheReplica) {
  const MirroredStrategy strategy = mirrored(2);
  const std::string text = thrown<FailedPreconditionError>([&] {
    strategy.run([](ReplicaContext& context) {
      context.merge_call([](Strategy&) {});
      if (context.replica_id_in_sync_group() == 0) context.merge_call([](Strategy&) {});
    });
  });
  EXPECT_THAT(text, HasSubstr("different number of merge_call"));
  EXPECT_THAT(text, HasSubstr("replica 1"));
  EXPECT_THAT(ids(strategy).values(), ElementsAre(0, 1));
}

TEST(StrategyRun, AReplicaThatNeverArrivesIsNamedAtTheDeadline) {
  const MirroredStrategy strategy = mirrored(2);
  std::atomic<bool> given_up{false};
  const std::string text = thrown<DeadlineExceededError>([&] {
    strategy.run(RunOptions{.timeout = milliseconds(30)}, [&](ReplicaContext& context) {
      if (context.replica_id_in_sync_group() == 1) {
        while (!given_up) std::this_thread::yield();
        return;
      }
      try {
        context.all_reduce(ReduceOp::SUM, number(1));
      } catch (...) {
        given_up = true;
        throw;
      }
    });
  });
  EXPECT_THAT(text, HasSubstr("replica 1"));
  EXPECT_THAT(ids(strategy).values(), ElementsAre(0, 1));
}

TEST(StrategyRun, AReplicaThatDoesNotReturnIsGivenUpAndTheStrategyRecovers) {
  const MirroredStrategy strategy = mirrored(2);
  std::atomic<bool> release{false}, returned{false};
  const auto step = [&](ReplicaContext& context) {
    if (context.replica_id_in_sync_group() == 0) return;
    while (!release) std::this_thread::yield();
    returned = true;
  };
  EXPECT_THAT(thrown<DeadlineExceededError>(
                  [&] { strategy.run(RunOptions{.timeout = milliseconds(20)}, step); }),
              HasSubstr("still running: replica 1"));
  EXPECT_THAT(thrown<FailedPreconditionError>([&] { ids(strategy); }),
              HasSubstr("still inside a step that was given up"));
  release = true;
  const std::optional<PerReplica<int>> result = ids_when_returned(strategy);
  ASSERT_TRUE(result);
  EXPECT_TRUE(returned);
  EXPECT_THAT(result->values(), ElementsAre(0, 1));
}

TEST(StrategyRun, NestedRunIsRefused) {
  const MirroredStrategy strategy = mirrored(2);
  EXPECT_THAT(thrown<FailedPreconditionError>([&] { strategy.run([&] { ids(strategy); }); }),
              HasSubstr("inside a step"));
  EXPECT_THAT(ids(strategy).values(), ElementsAre(0, 1));
}

TEST(StrategyRun, InAnotherStrategysScopeOrInMergeCallIsRefused) {
  const MirroredStrategy strategy = mirrored(2);
  const MirroredStrategy other({"CPU:0"});
  {
    auto scope = other.scope();
    EXPECT_THAT(thrown<FailedPreconditionError>([&] { ids(strategy); }),
                HasSubstr("Mixing different"));
  }
  EXPECT_THAT(thrown<FailedPreconditionError>([&] {
                strategy.run([&](ReplicaContext& context) {
                  context.merge_call([&](Strategy& merged) { ids(merged); });
                });
              }),
              HasSubstr("inside a step"));
}

TEST(StrategyRun, TheLongestTimeoutIsNoDeadline) {
  const MirroredStrategy strategy = mirrored(2);
  const RunOptions no_limit{.timeout = milliseconds::max()};
  strategy.run(no_limit, [](ReplicaContext& context) { context.merge_call([](Strategy&) {}); });
}

TEST(StrategyRun, ANegativeTimeoutIsRefused) {
  const MirroredStrategy strategy = mirrored(2);
  const RunOptions options{.timeout = milliseconds::min()};  // a cast makes it of NaN seconds
  EXPECT_THAT(thrown<InvalidArgumentError>([&] { strategy.run(options, [] {}); }),
              HasSubstr("RunOptions: timeout is -"));
  EXPECT_TRUE(ids_when_returned(strategy));
}

TEST(StrategyRun, GivingUpKeepsTheFirstError) {
  const MirroredStrategy strategy = mirrored(2);
  std::atomic<bool> release{false};
  const auto step = [&](ReplicaContext& context) {
    if (context.replica_id_in_sync_group() == 0) throw NotFoundError("the cause");
    while (!release) std::this_thread::yield();
  };
  EXPECT_THAT(thrown<DeadlineExceededError>(
                  [&] { strategy.run(RunOptions{.timeout = milliseconds(20)}, step); }),
              HasSubstr("the cause"));
  release = true;
  EXPECT_TRUE(ids_when_returned(strategy));
}

TEST(StrategyRun, RunFromTwoThreadsIsRefused) {
  const MirroredStrategy strategy = mirrored(2);
  std::string text;
  strategy.run([&](ReplicaContext& context) {
    if (context.replica_id_in_sync_group() != 0) return;
    std::thread other([&] { text = thrown<FailedPreconditionError>([&] { ids(strategy); }); });
    other.join();
  });
  EXPECT_THAT(text, HasSubstr("another thread"));
}

}  // namespace
}  // namespace cohort::distribute
