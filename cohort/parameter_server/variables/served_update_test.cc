// What StrategyExtended does with variables on ps tasks: as under every other strategy.
#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/ones.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cohort/core/testing_errors.h"
#include "cohort/distribute/reduction_to_one_device.h"
#include "cohort/distribute/testing_devices.h"
#include "cohort/distribute/testing_numbers.h"
#include "cohort/distribute/testing_updates.h"
#include "cohort/parameter_server/coordinator/cluster_coordinator.h"
#include "cohort/parameter_server/parameter_server_strategy.h"
#include "cohort/parameter_server/testing_cluster.h"

namespace cohort::distribute {
namespace {

using coordinator::ClusterCoordinator;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

class ServedUpdate : public ::testing::TestWithParam<int> {
 protected:
  static ParameterServerStrategyOptions options() {
    ParameterServerStrategyOptions options{.variable_partitioner =
                                               partitioners::FixedShardsPartitioner(2)};
    for (int i = 0; i < GetParam(); ++i) {
      options.worker_devices.push_back("CPU:" + std::to_string(i));
    }
    return options;
  }

  const LogicalCpus cpus_{GetParam()};
  TestingCluster cluster_{1, 2};
  const ParameterServerStrategy strategy_{cluster_.resolver(), options()};
};
INSTANTIATE_TEST_SUITE_P(ReplicasOfAWorker, ServedUpdate, ::testing::Values(1, 2));

TEST_P(ServedUpdate, TheStandardPatternMinimizesALoss) { minimize_loss(strategy_); }

TEST_P(ServedUpdate, InMergeCallAddsTheReplicasSum) { update_by_hand(strategy_); }

// In a closure that is run once, on the worker.
TEST_P(ServedUpdate, OfAWorkersStepCountsOnce) {
  const auto scope = strategy_.scope();
  const Variable v(number(1), {.name = "v"});
  const auto step = strategy_.function("step", [&] {
    strategy_.run([&](ReplicaContext& context) {
      context.merge_call(
          [](Strategy& merged, const PerReplica<Tensor>& updates, const Variable& merged_v) {
            const auto sum = merged.extended().reduce_to(ReduceOp::SUM, updates, merged_v);
            merged.extended().update(
                merged_v, [](Variable& c, const Tensor& x) { c.assign_add(x); }, sum);
          },
          number(1 + context.replica_id_in_sync_group()), v);
    });
  });
  const ClusterCoordinator coordinator(strategy_);
  for (int i = 0; i < 5; ++i) coordinator.schedule(step);
  coordinator.join();
  EXPECT_EQ(v.value().item<double>(), GetParam() == 1 ? 6 : 16);
}

TEST_P(ServedUpdate, AVariableIsOneComponentOfAnyNumberOfShards) {
  const auto scope = strategy_.scope();
  const Variable table(at::arange(10, float32).reshape({5, 2}), {.name = "table"});
  ASSERT_THAT(table.shards(), SizeIs(2));
  const std::vector<Tensor> results = strategy_.experimental_local_results(table);
  ASSERT_THAT(results, SizeIs(1));
  EXPECT_TRUE(at::equal(results[0], table.value()));
  EXPECT_TRUE(
      at::equal(ReductionToOneDevice().reduce(ReduceOp::MEAN, table, table).item(), results[0]));
  const auto after = strategy_.extended().update(
      table,
      [](Variable& whole, const Tensor& x) {
        whole.assign_add(x);
        return whole.value();
      },
      at::ones({5, 2}));
  ASSERT_THAT(after, SizeIs(1));
  EXPECT_TRUE(at::equal(after.item(), at::arange(1, 11, float32).reshape({5, 2})));
  EXPECT_TRUE(at::equal(table.value(), after.item()));
  EXPECT_TRUE(at::equal(results[0], at::arange(10, float32).reshape({5, 2})));  // a copy
}

TEST_P(ServedUpdate, DestinationsAreTheHost) {
  const auto scope = strategy_.scope();
  const Variable v(number(1), {.name = "v"});
  EXPECT_THAT(Destinations(v).devices(), ElementsAre(canonicalize("CPU:0")));
  EXPECT_EQ(strategy_.extended().non_slot_devices({v}), Destinations(v));
  const auto sum =
      strategy_.extended().reduce_to(ReduceOp::SUM, strategy_.run([] { return number(1); }), v);
  ASSERT_THAT(sum, SizeIs(1));
  EXPECT_EQ(sum.item().item<double>(), GetParam());
  EXPECT_THAT(strategy_.extended().broadcast_to(number(4), v), SizeIs(1));
  EXPECT_EQ(v.value().item<double>(), 1);
}

TEST_P(ServedUpdate, ANumberIsNoReplicasPartOfASum) {
  auto scope = strategy_.scope();
  const Variable sum(number(1), {.name = "sum", .aggregation = VariableAggregation::SUM});
  const Variable mean(number(1), {.name = "mean", .aggregation = VariableAggregation::MEAN});
  scope.close();
  const auto add = [&] { strategy_.run([&] { sum.assign_add(2.0); }); };
  if (GetParam() == 1) {
    add();
    EXPECT_EQ(sum.value().item<double>(), 3);
  } else {
    EXPECT_THAT(thrown<InvalidArgumentError>(add), HasSubstr("reduce op SUM"));
    EXPECT_EQ(sum.value().item<double>(), 1);
  }
  strategy_.run([&] { mean.assign_add(2.0); });
  EXPECT_EQ(mean.value().item<double>(), 3);
}

}  // namespace
}  // namespace cohort::distribute
