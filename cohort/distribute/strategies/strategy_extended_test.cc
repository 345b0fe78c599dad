#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cohort/distribute/strategies/one_device_strategy.h"
#include "cohort/distribute/strategies/replica_context.h"
#include "cohort/distribute/testing_devices.h"
#include "cohort/distribute/testing_numbers.h"
#include "cohort/distribute/testing_storage.h"

namespace cohort::distribute {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;

TEST(StrategyExtended, UpdateActsOnEveryComponent) {
  for (const Storage storage : kStorages) {
    const Strategy strategy = with_storage(storage, 2);
    auto scope = strategy.scope();
    const Variable v(number(5));
    strategy.extended().update(
        v, [](Variable& component, const Tensor& value) { component.assign_add(value); },
        number(1));
    EXPECT_THAT(components(v), Each(6));
  }
}

// The way to update variables that guide 002 gives: merge_call, batch_reduce_to, update.
TEST(StrategyExtended, StandardUpdatePattern) {
  for (const Storage storage : kStorages) {
    const Strategy strategy = with_storage(storage, 2);
    auto scope = strategy.scope();
    const Variable a(number(1)), b(number(10));
    strategy.run([&](ReplicaContext& context) {
      const double id = context.replica_id_in_sync_group();
      context.merge_call(
          [&](Strategy& merged, const PerReplica<Tensor>& da, const PerReplica<Tensor>& db) {
            const auto extended = merged.extended();
            const auto sums = extended.batch_reduce_to(ReduceOp::SUM, {{da, a}, {db, b}});
            const auto add = [](Variable& v, const Tensor& delta) { v.assign_add(delta); };
            extended.update(a, add, sums[0]);
            extended.update(b, add, sums[1]);
          },
          number(1), number(id));
    });
    EXPECT_THAT(components(a), Each(3));
    EXPECT_THAT(components(b), Each(11));
  }
}

TEST(StrategyExtended, ReduceToLeavesItsDestinationAlone) {
  const MirroredStrategy strategy = mirrored(2);
  auto scope = strategy.scope();
  const Variable v(number(5));
  const auto reduced =
      strategy.extended().reduce_to(ReduceOp::SUM, PerReplica<Tensor>({number(1), number(2)}), v);
  EXPECT_EQ(reduced.size(), 2U);
  EXPECT_EQ(reduced.value(1).item<double>(), 3);
  EXPECT_THAT(components(v), ElementsAre(5, 5));
}

TEST(StrategyExtended, OnOneDevice) {
  LogicalCpus cpus(1);
  const OneDeviceStrategy strategy("CPU:0");
  auto scope = strategy.scope();
  const Variable v(number(0));
  const auto sum = strategy.extended().reduce_to(ReduceOp::SUM, PerReplica<Tensor>({number(1)}), v);
  strategy.extended().update(
      v, [](Variable& c, const Tensor& x) { c.assign(x); }, sum);
  EXPECT_THAT(components(v), ElementsAre(1));
}

TEST(StrategyExtended, UpdateInAReplicaNamesMergeCall) {
  const MirroredStrategy strategy = mirrored(2);
  auto scope = strategy.scope();
  const Variable v(number(5));
  EXPECT_THROW(strategy.run([&] {
    strategy.extended().update(
        v, [](Variable&, const Tensor&) {}, number(1));
  }),
               FailedPreconditionError);
}

TEST(StrategyExtended, KnowsItsVariables) {
  const Variable outside(number(1));
  const MirroredStrategy strategy = mirrored(2);
  auto scope = strategy.scope();
  const Variable inside(number(1));
  EXPECT_TRUE(strategy.extended().variable_created_in_scope(inside));
  EXPECT_FALSE(strategy.extended().variable_created_in_scope(outside));
}

}  // namespace
}  // namespace cohort::distribute
