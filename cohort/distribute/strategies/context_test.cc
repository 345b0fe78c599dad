#include "cohort/distribute/strategies/context.h"

#include <ATen/ops/full.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <thread>

#include "cohort/distribute/core/context_stack.h"
#include "cohort/distribute/strategies/replica_context.h"
#include "cohort/distribute/testing_devices.h"

namespace cohort::distribute {
namespace {

using ::testing::HasSubstr;

TEST(Context, OutsideOfEveryScopeIsTheDefaultReplica) {
  EXPECT_FALSE(has_strategy());
  EXPECT_FALSE(in_cross_replica_context());
  ASSERT_NE(get_replica_context(), nullptr);
  EXPECT_EQ(get_replica_context()->num_replicas_in_sync(), 1);
  EXPECT_EQ(get_strategy().num_replicas_in_sync(), 1);
}

TEST(Context, AScopeIsCrossReplica) {
  const MirroredStrategy strategy = mirrored(2);
  {
    auto scope = strategy.scope();
    EXPECT_TRUE(has_strategy());
    EXPECT_TRUE(in_cross_replica_context());
    EXPECT_EQ(get_replica_context(), nullptr);
    EXPECT_TRUE(get_strategy() == strategy);
  }
  EXPECT_FALSE(has_strategy());
}

TEST(Context, AScopeCoversItsThreadOnly) {
  const MirroredStrategy strategy = mirrored(2);
  auto scope = strategy.scope();
  bool elsewhere = true;
  std::thread([&] { elsewhere = has_strategy(); }).join();
  EXPECT_FALSE(elsewhere);
}

TEST(Context, InAStepItIsAReplicaAndInMergeCallCross) {
  const MirroredStrategy strategy = mirrored(2);
  strategy.run([&](ReplicaContext& context) {
    EXPECT_FALSE(in_cross_replica_context());
    context.merge_call([&](Strategy& merged) {
      EXPECT_TRUE(in_cross_replica_context());
      EXPECT_TRUE(merged == strategy);
    });
    EXPECT_EQ(get_replica_context(), &context);
  });
}

TEST(Scope, MayBeReEnteredByTheSameStrategy) {
  const MirroredStrategy strategy = mirrored(2);
  auto outer = strategy.scope();
  auto inner = strategy.scope();
  inner.close();
  EXPECT_TRUE(get_strategy() == strategy);
  outer.close();
  EXPECT_FALSE(has_strategy());
}

TEST(Scope, OfAnotherStrategyIsRefused) {
  const MirroredStrategy one = mirrored(2);
  const MirroredStrategy two({"CPU:0"});
  auto scope = one.scope();
  try {
    auto inner = two.scope();
    FAIL() << "entered";
  } catch (const FailedPreconditionError& error) {
    EXPECT_THAT(error.what(), HasSubstr("Mixing different tf.distribute.Strategy objects"));
  }
  EXPECT_TRUE(get_strategy() == one);
}

TEST(Scope, CannotBeEnteredInAReplica) {
  const MirroredStrategy strategy = mirrored(2);
  EXPECT_THROW(strategy.run([&] { auto scope = strategy.scope(); }), FailedPreconditionError);
}

TEST(Scope, ClosingInTheWrongOrderThrowsAndHarmsNothing) {
  const MirroredStrategy strategy = mirrored(2);
  auto outer = strategy.scope();
  auto inner = strategy.scope();
  EXPECT_THROW(outer.close(), FailedPreconditionError);
  inner.close();
  outer.close();
  outer.close();  // closing twice does nothing
  EXPECT_FALSE(has_strategy());
}

TEST(Scope, ClosedInTheWrongOrderIsClosed) {
  const MirroredStrategy strategy = mirrored(2);
  auto outer = std::make_unique<Scope>(strategy.core());
  auto inner = std::make_unique<Scope>(strategy.core());
  testing::internal::CaptureStderr();
  outer.reset();
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("scope nesting error"));
  EXPECT_TRUE(get_strategy() == strategy);  // the inner scope is open
  inner.reset();
  EXPECT_FALSE(has_strategy());
  {
    auto next = strategy.scope();
    EXPECT_TRUE(has_strategy());
  }
  EXPECT_FALSE(has_strategy());
}

TEST(Scope, ClosedInTheWrongOrderAroundOtherContextsIsClosed) {
  const MirroredStrategy strategy = mirrored(2);
  auto outer = std::make_unique<Scope>(strategy.core());
  strategy.run([&](ReplicaContext& context) {
    if (context.replica_id_in_sync_group() != 0) return;  // replica 0 is on this thread
    EXPECT_THROW(outer->close(), FailedPreconditionError);
    EXPECT_EQ(get_replica_context(), &context);
  });
  EXPECT_FALSE(has_strategy());
}

TEST(Scope, ClosedOnAnotherThreadIsLeftByItsOwn) {
  const MirroredStrategy strategy = mirrored(2);
  auto first = std::make_unique<Scope>(strategy.core());
  auto second = std::make_unique<Scope>(strategy.core());
  testing::internal::CaptureStderr();
  std::thread([&] { first.reset(); }).join();
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("on another thread"));
  EXPECT_TRUE(get_strategy() == strategy);
  second.reset();
  EXPECT_FALSE(has_strategy());

  first = std::make_unique<Scope>(strategy.core());
  std::thread([&] { EXPECT_THROW(first->close(), FailedPreconditionError); }).join();
  EXPECT_FALSE(has_strategy());
  const MirroredStrategy other = mirrored(2);
  auto scope = other.scope();  // which an open scope of the first strategy would refuse
}

TEST(Scope, OpenAtTheEndOfTheMergeCallItWasEnteredInIsLeft) {
  const MirroredStrategy strategy = mirrored(2);
  const long owners = strategy.core().use_count();
  const auto nesting_error = HasSubstr("after the end of the step or merge_call");
  std::unique_ptr<Scope> scope;
  const auto enter = [&](ReplicaContext& context) {
    context.merge_call([&](Strategy&) { scope = std::make_unique<Scope>(strategy.core()); });
    EXPECT_EQ(get_replica_context(), &context);
  };
  const auto close = [&] {
    try {
      scope->close();
      ADD_FAILURE() << "no error";
    } catch (const FailedPreconditionError& error) {
      EXPECT_THAT(error.what(), nesting_error);
    }
    scope.reset();
  };
  strategy.run(enter);
  EXPECT_FALSE(has_strategy());
  close();
  strategy.run(enter);
  std::thread(close).join();
  EXPECT_EQ(strategy.core().use_count(), owners);  // no frame is left over
}

TEST(Scope, OfTheDefaultStrategyIsItsReplica) {
  const Strategy strategy = get_strategy();
  auto scope = strategy.scope();
  EXPECT_FALSE(has_strategy());
  EXPECT_NE(get_replica_context(), nullptr);
}

TEST(SetStrategy, IsCurrentWhereNoScopeIs) {
  const MirroredStrategy strategy = mirrored(2);
  experimental_set_strategy(&strategy);
  EXPECT_TRUE(has_strategy());
  EXPECT_TRUE(in_cross_replica_context());
  const Variable v(at::full({}, 1.0));
  experimental_set_strategy(nullptr);
  EXPECT_FALSE(has_strategy());
  EXPECT_EQ(v.components().size(), 2U);
}

// Whoever has asked which strategy is current may go on with it when another thread sets another.
TEST(SetStrategy, TheOneBeforeLivesAsLongAsItIsUsed) {
  {
    const MirroredStrategy strategy = mirrored(2);
    experimental_set_strategy(&strategy);
  }
  const std::weak_ptr<internal::StrategyCore> before = internal::current_core();
  const Variable v([&] {
    std::thread([] { experimental_set_strategy(nullptr); }).join();
    EXPECT_FALSE(before.expired());
    return Tensor(at::full({}, 1.0));
  });
  EXPECT_FALSE(has_strategy());
  EXPECT_EQ(v.components().size(), 2U);
}

TEST(SetStrategy, InsideAScopeIsRefused) {
  const MirroredStrategy strategy = mirrored(2);
  auto scope = strategy.scope();
  EXPECT_THROW(experimental_set_strategy(nullptr), FailedPreconditionError);
  EXPECT_THROW(experimental_set_strategy(&strategy), FailedPreconditionError);
}

TEST(DefaultStrategy, HasNoDevicesAndMergesByCalling) {
  EXPECT_THROW(get_strategy().extended().worker_devices(), FailedPreconditionError);
  const std::string merged = get_replica_context()->merge_call(
      [](Strategy&, const PerReplica<std::string>& value) {
        EXPECT_TRUE(in_cross_replica_context());
        EXPECT_FALSE(has_strategy());
        return "foo_" + value.item();
      },
      std::string("bar"));
  EXPECT_EQ(merged, "foo_bar");
}

}  // namespace
}  // namespace cohort::distribute
