// How steps end that fail in ways of their own.
#include <ATen/ops/ones.h>
#include <ATen/ops/rand.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pthread.h>

#include <atomic>
#include <memory>
#include <optional>
#include <thread>

#include "cohort/core/threads/testing_threads.h"
#include "cohort/core/traceback.h"
#include "cohort/distribute/strategies/context.h"
#include "cohort/distribute/strategies/one_device_strategy.h"
#include "cohort/distribute/testing_devices.h"
#include "cohort/distribute/testing_errors.h"
#include "cohort/ops/gradient_tape.h"

namespace cohort::distribute {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

std::vector<int> all_ids(const Strategy& strategy) {
  const auto ids =
      strategy.run([](ReplicaContext& context) { return context.replica_id_in_sync_group(); });
  return {ids.values().begin(), ids.values().end()};
}

void fail_in_libtorch() { at::ones({2}).matmul(at::ones({3})); }

TEST(StepError, OfLibtorchIsTypedNamesTheReplicaAndIsShort) {
  const MirroredStrategy strategy = mirrored(3);
  const auto on_replica_2 = [&] {
    strategy.run([](ReplicaContext& context) {
      if (context.replica_id_in_sync_group() == 2) fail_in_libtorch();
    });
  };
  const std::string text = thrown<InvalidArgumentError>(on_replica_2);
  EXPECT_THAT(text, AllOf(StartsWith("replica 2: "), HasSubstr("inconsistent tensor size"),
                          Not(HasSubstr("frame #"))));
  debugging::disable_traceback_filtering();
  EXPECT_THAT(thrown<InvalidArgumentError>(on_replica_2), HasSubstr("frame #"));
  debugging::enable_traceback_filtering();
  EXPECT_THAT(all_ids(strategy), ElementsAre(0, 1, 2));
}

TEST(StepError, OfLibtorchIsTheSameUnderEveryStrategy) {
  EXPECT_THAT(thrown<InvalidArgumentError>([] { get_strategy().run(fail_in_libtorch); }),
              StartsWith("replica 0: "));
  EXPECT_THAT(
      thrown<InvalidArgumentError>([] { OneDeviceStrategy("CPU:0").run(fail_in_libtorch); }),
      StartsWith("replica 0: "));
}

TEST(StepError, OfLibtorchInAMergeCallIsOfAllReplicas) {
  const MirroredStrategy strategy = mirrored(2);
  EXPECT_THAT(thrown<InvalidArgumentError>([&] {
                strategy.run([](ReplicaContext& context) {
                  context.merge_call([](Strategy&) { fail_in_libtorch(); });
                });
              }),
              AllOf(StartsWith("in a call of all replicas: "), Not(HasSubstr("frame #"))));
}

TEST(StepError, OfLibtorchInATapeSaysSo) {
  const Variable x(at::ones({2}));
  GradientTape tape;
  const Tensor y = x.value() * 2;
  const Tensor squares = y * y;
  {
    const NoGradient no_gradient;
    const_cast<Tensor&>(y).add_(1);
  }
  EXPECT_THAT(thrown<InvalidArgumentError>([&] { tape.gradient(squares, x.value()); }),
              AllOf(StartsWith("GradientTape::gradient: "), HasSubstr("inplace operation"),
                    Not(HasSubstr("frame #"))));
}

TEST(StepError, OfLibtorchInReduceAndGatherIsTyped) {
  const MirroredStrategy strategy = mirrored(2);
  const PerReplica<Tensor> undefined({Tensor(), Tensor()});
  EXPECT_THAT(thrown<InvalidArgumentError>([&] { strategy.reduce(ReduceOp::SUM, undefined); }),
              HasSubstr("cannot reduce an undefined tensor"));
  EXPECT_THAT(thrown<InvalidArgumentError>([&] { strategy.gather(undefined, 0); }),
              HasSubstr("cannot gather an undefined tensor"));
}

TEST(StepError, OfCohortsClassesNamesTheReplicaAndAProgramsOwnStaysAsItIs) {
  const MirroredStrategy strategy = mirrored(2);
  struct Own : std::runtime_error {
    using std::runtime_error::runtime_error;
  };
  const auto on_replica_1 = [&](const auto& error) {
    return [&strategy, error] {
      strategy.run([&](ReplicaContext& context) {
        if (context.replica_id_in_sync_group() == 1) throw error;
      });
    };
  };
  EXPECT_EQ(thrown<NotFoundError>(on_replica_1(NotFoundError("x"))), "replica 1: x");
  EXPECT_EQ(thrown<Own>(on_replica_1(Own("x"))), "x");
}

TEST(StepError, TheLastHandleMayGoInsideItsOwnStep) {
  for (int replica = 0; replica < 2; ++replica) {
    std::optional<MirroredStrategy> strategy = mirrored(2);
    const std::weak_ptr<internal::StrategyCore> core = strategy->core();
    const auto results = strategy->run([&](ReplicaContext& context) {
      if (context.replica_id_in_sync_group() == replica) strategy.reset();
      context.merge_call([](Strategy& merged) { EXPECT_EQ(merged.num_replicas_in_sync(), 2); });
      return context.replica_id_in_sync_group();
    });
    EXPECT_THAT(results.values(), ElementsAre(0, 1));
    EXPECT_TRUE(core.expired());
  }
}

TEST(StepError, AThreadThatIsEndedInsideAStepIsReplaced) {
  const MirroredStrategy strategy = mirrored(3);
  for (int i = 0; i < 3; ++i) {
    const std::string text = thrown<FailedPreconditionError>([&] {
      strategy.run([](ReplicaContext& context) {
        if (context.replica_id_in_sync_group() == 1) pthread_exit(nullptr);
        context.all_reduce(ReduceOp::SUM, at::ones({}));
      });
    });
    EXPECT_THAT(text, AllOf(StartsWith("replica 1: "), HasSubstr("pthread_exit")));
    EXPECT_THAT(all_ids(strategy), ElementsAre(0, 1, 2));
  }
}

TEST(StepError, WhereThereIsNoThreadForAReplicaTheErrorSaysSo) {
  const auto without_threads = [](const auto& call) {
    const internal::NoMoreThreads none;
    EXPECT_THAT(thrown<ResourceExhaustedError>(call), HasSubstr("no thread for replica 1"));
  };
  without_threads([] { mirrored(2); });
  const MirroredStrategy strategy = mirrored(2);
  const auto end_replica_1 = [&] {
    EXPECT_THROW(strategy.run([](ReplicaContext& context) {
      if (context.replica_id_in_sync_group() == 1) pthread_exit(nullptr);
    }),
                 FailedPreconditionError);
  };
  end_replica_1();
  for (int i = 0; i < 2; ++i) without_threads([&] { all_ids(strategy); });
  EXPECT_THAT(all_ids(strategy), ElementsAre(0, 1)) << "there are threads again";
  end_replica_1();
  without_threads([&] { all_ids(strategy); });  // and the strategy ends with one thread less
}

TEST(StepError, ACallersThreadMayEndInsideAStep) {
  const MirroredStrategy strategy = mirrored(2);
  std::atomic<int> others{0};
  std::thread([&] {
    strategy.run([&](ReplicaContext& context) {
      if (context.replica_id_in_sync_group() == 0) pthread_exit(nullptr);
      ++others;
    });
    ADD_FAILURE() << "run returned";
  }).join();
  EXPECT_EQ(others, 1);
  EXPECT_THAT(all_ids(strategy), ElementsAre(0, 1));
}

TEST(StepError, AThreadMayEndInAMergeCall) {
  const MirroredStrategy strategy = mirrored(2);
  std::string text;
  std::thread([&] {  // the leader is either thread; if it is this one, nothing is thrown here
    text = thrown<FailedPreconditionError>([&] {
      strategy.run([&](ReplicaContext& context) {
        context.merge_call([](Strategy&) { pthread_exit(nullptr); });
      });
    });
  })
      .join();
  EXPECT_THAT(text, ::testing::AnyOf("", HasSubstr("pthread_exit")));
  EXPECT_THAT(all_ids(strategy), ElementsAre(0, 1));
}

}  // namespace
}  // namespace cohort::distribute
