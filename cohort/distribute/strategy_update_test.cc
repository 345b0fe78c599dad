// StrategyExtended's update of variables, and of what belongs to none.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "cohort/distribute/strategies/context.h"
#include "cohort/distribute/testing_errors.h"
#include "cohort/distribute/testing_numbers.h"
#include "cohort/distribute/testing_strategies.h"
#include "cohort/distribute/testing_updates.h"

namespace cohort::distribute {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using enum VariableAggregation;

constexpr auto ON_READ = VariableSynchronization::ON_READ;

std::vector<double> results(const Mirrored<Tensor>& mirrored) {
  return values(PerReplica<Tensor>({mirrored.values().begin(), mirrored.values().end()}));
}

TEST(StrategyUpdate, TheStandardPatternMinimizesALoss) { under_every_strategy(minimize_loss); }

TEST(StrategyUpdate, InMergeCallAddsTheReplicasSum) { under_every_strategy(update_by_hand); }

TEST(StrategyUpdate, TakesSeveralArgumentsAndReturnsWhatTheFunctionReturns) {
  under_every_strategy([](const Strategy& strategy) {
    const auto scope = strategy.scope();
    const Variable v(number(2)), other(number(10));
    const auto after = strategy.extended().update(
        v,
        [](Variable& component, const Tensor& x, double scale, const Variable& w) {
          component.assign_add(x * scale + w.value());
          return component.value().clone();
        },
        number(3), 2.0, other);
    EXPECT_EQ(after.size(), v.components().size());
    EXPECT_THAT(results(after), Each(18));
    EXPECT_THAT(components(v), Each(18));
    int calls = 0;
    strategy.extended().update(v, [&](Variable& component) {
      ++calls;
      component.assign(7);
    });
    EXPECT_GE(calls, 1);
    EXPECT_THAT(components(v), Each(7));
  });
}

// As values_test's testStrategyExtendedUpdate: each component with its own argument.
TEST(StrategyUpdate, OfAnOnReadVariableGoesThroughItsComponents) {
  for (const VariableAggregation aggregation : {NONE, SUM, MEAN, ONLY_FIRST_REPLICA}) {
    under_every_strategy([&](const Strategy& strategy) {
      const auto scope = strategy.scope();
      const Variable v(number(0), {.synchronization = ON_READ, .aggregation = aggregation});
      const PerReplica<Tensor> ids = strategy.experimental_distribute_values_from_function(
          [](const ValueContext& context) { return number(context.replica_id_in_sync_group + 1); });
      const auto expect_times = [&](double factor) {
        const std::vector<double> now = components(v);
        ASSERT_EQ(now.size(), ids.size());
        for (size_t i = 0; i < now.size(); ++i) {
          EXPECT_EQ(now[i], factor * ids.value(i).item<double>());
        }
      };
      const auto update = [&](const std::function<void(Variable&, const Tensor&)>& fn) {
        strategy.extended().update(v, fn, ids);
      };
      update([](Variable& c, const Tensor& x) { c.assign(x); });
      expect_times(1);
      update([](Variable& c, const Tensor& x) { c.assign_add(x); });
      expect_times(2);
      update([](Variable& c, const Tensor& x) { c.assign_sub(x); });
      expect_times(1);
      const auto read = strategy.extended().update(
          v,
          [](Variable& c, const Tensor& x) {
            c.assign_add(x);
            c.assign_add(x);
            return c.value().clone();
          },
          ids);
      expect_times(3);
      EXPECT_EQ(results(read), components(v));
      strategy.extended().update(v, [](Variable& c) { c.assign_add(0.5); });  // a number
      EXPECT_EQ(components(v)[0], 3 * ids.value(0).item<double>() + 0.5);
    });
  }
}

// As mirrored_variable_test's testSyncOnReadVariableUpdate.
TEST(StrategyUpdate, OfAnOnReadSumCountsForEachComponent) {
  under_every_strategy([](const Strategy& strategy) {
    const auto scope = strategy.scope();
    const int n = strategy.num_replicas_in_sync();
    const Variable v(number(1), {.synchronization = ON_READ, .aggregation = SUM});
    EXPECT_EQ(strategy.extended().read_var(v).item<double>(), n);
    strategy.extended().update(
        v, [](Variable& c, const Tensor& x) { c.assign_add(x); }, number(5));
    EXPECT_EQ(strategy.extended().read_var(v).item<double>(), 6 * n);
  });
}

TEST(StrategyUpdate, RefusesArgumentsThatMayDiffer) {
  for (const Storage storage : kStorages) {
    const Strategy strategy = with_storage(storage, 2);
    const auto scope = strategy.scope();
    const Variable v(number(0), {.name = "v"});
    const Variable on_read(number(0), {.name = "r", .synchronization = ON_READ});
    const auto assign = [](Variable& c, const Tensor& x) { c.assign(x); };
    const PerReplica<Tensor> two({number(1), number(2)});
    EXPECT_THAT(refused([&] { strategy.extended().update(v, assign, two); }),
                AllOf(HasSubstr("Expected value to be mirrored"), HasSubstr("'v'")));
    EXPECT_THAT(refused([&] {
                  strategy.extended().update(on_read, assign, PerReplica<Tensor>({number(1)}));
                }),
                AllOf(HasSubstr("'r'"), HasSubstr("2 components"), HasSubstr("of 1")));
    EXPECT_THAT(components(v), Each(0));
  }
  run_all_tasks(2, 1, [](const Strategy& strategy, int) {
    const auto scope = strategy.scope();
    const Variable v(number(0), {.name = "v"});
    EXPECT_THAT(refused([&] {
                  strategy.extended().update(
                      v, [](Variable& c, const Tensor& x) { c.assign(x); },
                      PerReplica<Tensor>({number(1)}));
                }),
                HasSubstr("Expected value to be mirrored"));
  });
}

TEST(StrategyUpdate, OfAnotherStrategysVariableIsRefused) {
  const Variable outside(number(1), {.name = "outside"});
  const MirroredStrategy strategy = mirrored(2);
  const auto assign = [](Variable& c) { c.assign(2); };
  EXPECT_THAT(refused([&] { strategy.extended().update(outside, assign); }),
              AllOf(HasSubstr("'outside'"), HasSubstr("default strategy")));
  get_strategy().extended().update(outside, assign);
  EXPECT_EQ(outside.value().item<double>(), 2);
}

TEST(StrategyUpdate, ReadVarStaysAsItIs) {
  under_every_strategy([](const Strategy& strategy) {
    const auto scope = strategy.scope();
    const Variable v(number(1));
    const Tensor before = strategy.extended().read_var(v);
    v.assign(2);
    EXPECT_EQ(before.item<double>(), 1);
    EXPECT_THAT(thrown<FailedPreconditionError>(
                    [&] { strategy.run([&] { strategy.extended().read_var(v); }); }),
                HasSubstr("Variable::value"));
  });
}

// As distribute_lib_test's testUpdateNonSlot where there is one device.
TEST(StrategyUpdate, OfWhatBelongsToNoVariableIsOncePerDevice) {
  under_every_strategy([](const Strategy& strategy) {
    const auto scope = strategy.scope();
    const StrategyExtended extended = strategy.extended();
    const Variable v(number(0));
    const Destinations devices = extended.non_slot_devices({v});
    EXPECT_EQ(devices, Destinations(v));
    int calls = 0;
    const auto doubled = extended.update_non_slot(
        devices,
        [&](const Tensor& x) {
          EXPECT_TRUE(in_cross_replica_context());
          ++calls;
          return x * 2;
        },
        extended.broadcast_to(number(4), devices));
    EXPECT_EQ(static_cast<size_t>(calls), devices.devices().size());
    EXPECT_THAT(results(doubled), Each(8));
    EXPECT_THAT(refused([&] { extended.non_slot_devices({}); }), HasSubstr("needs a variable"));
    EXPECT_THAT(thrown<FailedPreconditionError>(
                    [&] { strategy.run([&] { extended.update_non_slot(devices, [] {}); }); }),
                HasSubstr("merge_call"));
  });
}

TEST(StrategyUpdate, CallForEachReplicaIsRun) {
  const MirroredStrategy strategy = mirrored(2);
  const auto sums = strategy.extended().call_for_each_replica(
      [](ReplicaContext& context, const Tensor& x) {
        return x + context.replica_id_in_sync_group();
      },
      PerReplica<Tensor>({number(10), number(20)}));
  EXPECT_THAT(values(sums), ElementsAre(10, 21));
}

}  // namespace
}  // namespace cohort::distribute
