// What StrategyExtended does with variables on ps tasks: as under every other strategy.
#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cohort/core/error.h"
#include "cohort/core/profiler/tracing.h"
#include "cohort/core/testing_errors.h"
#include "cohort/distribute/reduce/reduction_to_one_device.h"
#include "cohort/distribute/testing_numbers.h"
#include "cohort/distribute/testing_updates.h"
#include "cohort/parameter_server/cluster_coordinator.h"
#include "cohort/parameter_server/variables/testing_two_shards.h"

namespace cohort::distribute {
namespace {

using coordinator::ClusterCoordinator;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

class ServedUpdate : public ::testing::TestWithParam<int>, protected TwoShards {
 protected:
  ServedUpdate() : TwoShards(GetParam()) {}
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
  const Variable v = table();
  ASSERT_THAT(v.shards(), SizeIs(2));
  const std::vector<Tensor> results = strategy_.experimental_local_results(v);
  ASSERT_THAT(results, SizeIs(1));
  EXPECT_TRUE(at::equal(results[0], v.value()));
  EXPECT_TRUE(at::equal(ReductionToOneDevice().reduce(ReduceOp::MEAN, v, v).item(), results[0]));
  const auto after = strategy_.extended().update(
      v,
      [](Variable& whole, const Tensor& x) {
        whole.assign_add(x);
        return whole.value();
      },
      at::ones({5, 2}));
  ASSERT_THAT(after, SizeIs(1));
  EXPECT_TRUE(at::equal(after.item(), at::arange(1, 11, float32).reshape({5, 2})));
  EXPECT_TRUE(at::equal(v.value(), after.item()));
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

// What replicas and merge_call assign in one step counts in the order in which the program does it.
TEST_P(ServedUpdate, AStepsWritesCountInTheProgramsOrder) {
  const double n = GetParam();
  auto scope = strategy_.scope();
  const Variable v(number(1), {.name = "v", .aggregation = VariableAggregation::SUM});
  scope.close();
  std::vector<double> seen;
  const auto see = [&] { seen.push_back(v.value().item<double>()); };
  strategy_.run([&](ReplicaContext& context) {
    v.assign_add(number(2));
    context.merge_call([&](Strategy& merged) {
      see();
      v.assign(v.value() * 10);
      const Tensor before = v.value();
      merged.extended().update(v, [](Variable& c) { c.assign_sub(number(1)); });
      see();
      EXPECT_EQ(before.item<double>(), seen.back() + 1);  // it stays as it was read
    });
    v.assign_add(number(3));
  });
  EXPECT_THAT(seen, ElementsAre(1 + 2 * n, 10 * (1 + 2 * n) - 1));
  EXPECT_EQ(v.value().item<double>(), 10 * (1 + 2 * n) - 1 + 3 * n);
  strategy_.run([&](ReplicaContext& context) {
    context.merge_call([&](Strategy&) { v.assign(number(5)); });
    v.assign_add(number(1));
    context.merge_call([&](Strategy&) { see(); });
  });
  EXPECT_EQ(seen.back(), 5 + n);
  EXPECT_EQ(v.value().item<double>(), 5 + n);
}

TEST_P(ServedUpdate, AStepsRowsAreWrittenInTheProgramsOrder) {
  const double n = GetParam();
  auto scope = strategy_.scope();
  const Variable table(at::zeros({5, 2}),
                       {.name = "table", .aggregation = VariableAggregation::SUM});
  scope.close();
  const Tensor rows = at::arange(1, 4);  // of both shards
  const auto first_of = [](const Tensor& found) { return found.select(1, 0).clone(); };
  std::vector<Tensor> seen;
  strategy_.run([&](ReplicaContext& context) {
    table.scatter_add({.values = at::ones({3, 2}), .indices = rows});
    context.merge_call([&](Strategy&) {
      seen.push_back(first_of(table.sparse_read(rows)));
      table.scatter_mul({.values = at::full({3, 2}, 3.f), .indices = rows});
      table.shards()[1].assign_add(at::ones({2, 2}));
      seen.push_back(first_of(table.sparse_read(rows)));
      seen.push_back(first_of(table.value()));
    });
  });
  const auto numbers = [](std::vector<double> of) { return at::tensor(of, float32); };
  ASSERT_THAT(seen, SizeIs(3));
  EXPECT_TRUE(at::equal(seen[0], numbers({n, n, n})));
  EXPECT_TRUE(at::equal(seen[1], numbers({3 * n, 3 * n, 3 * n + 1})));
  EXPECT_TRUE(at::equal(seen[2], numbers({0, 3 * n, 3 * n, 3 * n + 1, 1})));
  EXPECT_TRUE(at::equal(first_of(table.value()), seen[2]));
}

// By the variable's aggregation, as the whole of it.
TEST_P(ServedUpdate, AShardIsAssignedWhatTheReplicasBring) {
  const double n = GetParam();
  auto scope = strategy_.scope();
  const Variable sums(at::zeros({5, 2}), {.name = "sums", .aggregation = VariableAggregation::SUM});
  const Variable means(at::zeros({5, 2}),
                       {.name = "means", .aggregation = VariableAggregation::MEAN});
  scope.close();
  const auto assign = [](const Variable& v) {
    const Variable shard = v.shards()[1];
    shard.assign(at::full({2, 2}, 2.f))
        .scatter_add({.values = at::ones({1, 2}), .indices = at_rows({1})})
        .assign_add(at::ones({2, 2}));
  };
  strategy_.run([&] {
    assign(sums);
    assign(means);
  });
  for (const auto& [v, parts] : {std::pair(sums, n), std::pair(means, 1.)}) {
    const Tensor column = at::tensor({0., 0., 0., 3 * parts, 4 * parts}, float32);
    EXPECT_TRUE(at::equal(v.value(), column.unsqueeze(1).expand({5, 2}))) << v.value();
  }
  const Tensor before = sums.value();
  {
    const internal::Tracing tracing;  // as of a model's form
    assign(sums);
  }
  EXPECT_TRUE(at::equal(sums.value(), before));
}

TEST_P(ServedUpdate, AStepThatFailsAfterMergeCallChangesNothing) {
  const auto scope = strategy_.scope();
  const Variable v(number(1), {.name = "v"});
  EXPECT_THROW(strategy_.run([&](ReplicaContext& context) {
    context.merge_call([&](Strategy&) { v.assign(number(7)); });
    throw DataLossError("lost");
  }),
               DataLossError);
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
