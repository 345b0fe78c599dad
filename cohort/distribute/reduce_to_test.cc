// StrategyExtended's reductions: what they take, and where the result is.
#include <ATen/ops/full.h>
#include <ATen/ops/index_add.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cohort/distribute/reduce/reduction_to_one_device.h"
#include "cohort/distribute/strategies/replica_context.h"
#include "cohort/distribute/testing_errors.h"
#include "cohort/distribute/testing_numbers.h"
#include "cohort/distribute/testing_strategies.h"
#include "cohort/ops/make_tensor.h"

namespace cohort::distribute {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

std::vector<double> copies_of(const Mirrored<Tensor>& mirrored) {
  return values(PerReplica<Tensor>({mirrored.values().begin(), mirrored.values().end()}));
}

// As distribute_lib_test's testReductions_acceptStringOps.
TEST(ReduceTo, OpsMayBeNames) {
  under_every_strategy([](const Strategy& strategy) {
    const StrategyExtended extended = strategy.extended();
    const auto ones = strategy.run([] { return number(1); });
    for (const char* op : {"mean", "MEAN", "sum", "SUM"}) {
      const bool is_mean = parse_reduce_op(op) == ReduceOp::MEAN;
      const double expected = is_mean ? 1 : strategy.num_replicas_in_sync();
      EXPECT_EQ(strategy.reduce(op, ones).item<double>(), expected);
      EXPECT_EQ(extended.reduce_to(op, ones, ones).item().item<double>(), expected);
      const auto batch = extended.batch_reduce_to(op, {{ones, ones}, {ones, "CPU:0"}});
      EXPECT_EQ(batch[1].item().item<double>(), expected);
      strategy.run([&](ReplicaContext& context) {
        EXPECT_EQ(context.all_reduce(op, number(1)).item<double>(), expected);
      });
    }
    EXPECT_THAT(refused([&] { extended.reduce_to("max", ones, ones); }), HasSubstr("max"));
  });
}

TEST(ReduceTo, DestinationsMayBeDevicesValuesAndVariables) {
  const MirroredStrategy strategy = mirrored(2);
  const StrategyExtended extended = strategy.extended();
  const PerReplica<Tensor> two({number(1), number(2)});
  const auto sum = [&](const Destinations& to) {
    return copies_of(extended.reduce_to(ReduceOp::SUM, two, to));
  };
  EXPECT_THAT(sum("CPU:1"), ElementsAre(3));
  EXPECT_THAT(sum(number(0)), ElementsAre(3));
  EXPECT_THAT(sum(two), ElementsAre(3, 3));
  EXPECT_THAT(sum(Mirrored<Tensor>({number(0), number(0)})), ElementsAre(3, 3));
  const auto scope = strategy.scope();
  EXPECT_THAT(sum(Variable(number(7))), ElementsAre(3, 3));
  EXPECT_THAT(refused([&] { sum("CPU:7"); }), HasSubstr("CPU:7"));
  EXPECT_THAT(thrown<FailedPreconditionError>([&] { strategy.run([&] { sum("CPU:0"); }); }),
              HasSubstr("all_reduce"));
}

TEST(ReduceTo, PlainAndMirroredValuesAreThoseOfReduce) {
  const MirroredStrategy strategy = mirrored(2);
  const StrategyExtended extended = strategy.extended();
  const Mirrored<Tensor> equal({number(3), number(3)});
  EXPECT_THAT(copies_of(extended.reduce_to(ReduceOp::MEAN, equal, equal)), ElementsAre(3, 3));
  EXPECT_THAT(copies_of(extended.reduce_to(ReduceOp::SUM, equal, "CPU:0")), ElementsAre(6));
  EXPECT_THAT(copies_of(extended.reduce_to(ReduceOp::MEAN, number(3), equal)), ElementsAre(3, 3));
  EXPECT_THAT(refused([&] { extended.reduce_to(ReduceOp::SUM, number(3), equal); }),
              HasSubstr("plain value"));
  const auto means = extended.batch_reduce_to("MEAN", {{number(1), equal}, {number(2), "CPU:1"}});
  ASSERT_THAT(means, SizeIs(2));
  EXPECT_THAT(copies_of(means[0]), ElementsAre(1, 1));
  EXPECT_THAT(copies_of(means[1]), ElementsAre(2));
}

// As strategy_common_test's testReduceToHostTensor, testBatchReduceToHostTensor and
// testReduceToDeviceTensors.
TEST(ReduceTo, APlainValueIsOneOfEachTask) {
  run_all_tasks(2, 1, [](const Strategy& strategy, int) {
    const StrategyExtended extended = strategy.extended();
    const Tensor one = constant(1.);
    EXPECT_THAT(copies_of(extended.reduce_to(ReduceOp::SUM, one, one)), ElementsAre(2));
    for (const auto& sum : extended.batch_reduce_to(ReduceOp::SUM, {{one, one}, {one, one}})) {
      EXPECT_THAT(copies_of(sum), ElementsAre(2));
    }
    const auto ones = strategy.run([] { return constant(1.); });
    EXPECT_THAT(copies_of(extended.reduce_to(ReduceOp::SUM, ones, ones)), ElementsAre(2));
    for (const auto& sum : extended.batch_reduce_to(ReduceOp::SUM, {{ones, ones}, {ones, ones}})) {
      EXPECT_THAT(copies_of(sum), ElementsAre(2));
    }
  });
}

// Replica i has row i and row 3, of i + 1.
TEST(ReduceTo, RowsOfIndexedSlicesComeTogether) {
  const auto check = [](const Strategy& strategy) {
    const auto rows = strategy.run([](ReplicaContext& context) {
      const int64_t id = context.replica_id_in_sync_group();
      return std::pair(at::full({2, 1}, static_cast<double>(id + 1)), constant({id, int64_t{3}}));
    });
    PerReplica<IndexedSlices>::Values slices;
    for (const auto& [row_values, indices] : rows.values()) {
      slices.push_back({.values = row_values, .indices = indices, .dense_shape = {{4, 1}}});
    }
    const PerReplica<IndexedSlices> value(std::move(slices));
    const int n = strategy.num_replicas_in_sync();
    for (const ReduceOp op : {ReduceOp::SUM, ReduceOp::MEAN}) {
      const IndexedSlices sum = strategy.extended().reduce_to(op, value, "CPU:0").item();
      const Tensor dense =
          at::zeros({4, 1}).index_add(0, sum.indices.to(int64), sum.values.to(float32)).flatten();
      const float count = op == ReduceOp::SUM ? 1 : static_cast<float>(n);
      EXPECT_EQ(sum.indices.numel(), 2 * n);
      EXPECT_FLOAT_EQ(dense[0].item<float>(), 1 / count);
      const auto all = static_cast<float>(n * (n + 1) / 2 + (n == 4 ? 4 : 0));
      EXPECT_FLOAT_EQ(dense[3].item<float>(), all / count);
      EXPECT_EQ(sum.dense_shape, (std::vector<int64_t>{4, 1}));
    }
    EXPECT_THAT(refused([&] {
                  strategy.extended().reduce_to(ReduceOp::SUM, PerReplica<IndexedSlices>(),
                                                "CPU:0");
                }),
                HasSubstr("at least one component"));
  };
  under_every_strategy(check);
  const LogicalCpus cpus(2);
  check(MirroredStrategy({"CPU:0", "CPU:1"},
                         {.cross_device_ops = std::make_shared<ReductionToOneDevice>()}));
}

TEST(BroadcastTo, PutsAValueOnEveryDestination) {
  under_every_strategy([](const Strategy& strategy) {
    const auto scope = strategy.scope();
    const Variable v(number(0));
    const auto copies = strategy.extended().broadcast_to(number(4), v);
    EXPECT_EQ(copies.size(), v.components().size());
    for (const Tensor& copy : copies.values()) EXPECT_EQ(copy.item<double>(), 4);
  });
}

}  // namespace
}  // namespace cohort::distribute
