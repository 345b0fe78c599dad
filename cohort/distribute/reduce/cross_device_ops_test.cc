#include "cohort/distribute/reduce/cross_device_ops.h"

#include <ATen/ops/sparse_coo_tensor.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cohort/distribute/reduce/all_reduce_ops.h"
#include "cohort/distribute/reduce/reduction_to_one_device.h"
#include "cohort/distribute/strategies/replica_context.h"
#include "cohort/distribute/testing_devices.h"
#include "cohort/distribute/testing_errors.h"
#include "cohort/distribute/testing_numbers.h"
#include "cohort/distribute/testing_storage.h"
#include "cohort/ops/make_tensor.h"

namespace cohort::distribute {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

std::vector<double> copies_of(const Mirrored<Tensor>& mirrored) {
  return values(PerReplica<Tensor>({mirrored.values().begin(), mirrored.values().end()}));
}

std::vector<std::shared_ptr<CrossDeviceOps>> all_kinds() {
  return {std::make_shared<ReductionToOneDevice>(), std::make_shared<HierarchicalCopyAllReduce>(),
          std::make_shared<HierarchicalCopyAllReduce>(0),
          std::make_shared<HierarchicalCopyAllReduce>(3)};
}

TEST(CrossDeviceOps, ReduceToTheirDestinations) {
  const LogicalCpus cpus(3);
  const PerReplica<Tensor> three({number(1), number(2), number(6)});
  for (const auto& ops : all_kinds()) {
    EXPECT_THAT(copies_of(ops->reduce(ReduceOp::SUM, three, three)), ElementsAre(9, 9, 9));
    EXPECT_THAT(copies_of(ops->reduce(ReduceOp::MEAN, three, "CPU:2")), ElementsAre(3));
    EXPECT_THAT(copies_of(ops->reduce(ReduceOp::SUM, three, number(0))), ElementsAre(9));
    EXPECT_THAT(copies_of(ops->reduce(ReduceOp::MEAN, constant({1, 2}).sum(), three)),
                ElementsAre(3, 3, 3));
    EXPECT_THAT(copies_of(ops->broadcast(number(4), three)), ElementsAre(4, 4, 4));
  }
}

TEST(CrossDeviceOps, TakesAListOfDevices) {
  const LogicalCpus cpus(3);
  const std::vector<std::string> two = {"CPU:0", "CPU:2"};
  EXPECT_THAT(copies_of(CrossDeviceOps::broadcast(number(4), {"CPU:0", "CPU:2"})),
              ElementsAre(4, 4));
  EXPECT_EQ(Destinations(two).devices()[1], canonicalize("CPU:2"));
  EXPECT_THAT(copies_of(ReductionToOneDevice().reduce(
                  ReduceOp::SUM, PerReplica<Tensor>({number(1), number(2)}), two)),
              ElementsAre(3, 3));
  const MirroredStrategy strategy = mirrored(2);
  EXPECT_THAT(copies_of(strategy.extended().broadcast_to(number(4), {"CPU:0", "CPU:1"})),
              ElementsAre(4, 4));
  EXPECT_THAT(thrown<InvalidArgumentError>([] { Destinations{std::vector<std::string>()}; }),
              HasSubstr("empty list"));
}

TEST(CrossDeviceOps, ReduceToTheDevicesOfAVariableWhichStaysAsItIs) {
  const MirroredStrategy strategy = mirrored(2);
  const auto scope = strategy.scope();
  const Variable v(number(7));
  const ReductionToOneDevice ops;
  const PerReplica<Tensor> two({number(1), number(2)});
  EXPECT_EQ(Destinations(v).devices(), strategy.extended().worker_devices());
  EXPECT_THAT(copies_of(ops.reduce(ReduceOp::SUM, two, v)), ElementsAre(3, 3));
  EXPECT_THAT(components(v), ElementsAre(7, 7));
}

// As cross_device_ops_test's testReduceDistributedVariable.
TEST(CrossDeviceOps, OfAVariableReduceItsComponents) {
  for (const Storage storage : {Storage::kShared, Storage::kPerReplica}) {
    const Strategy strategy = with_storage(storage, 2);
    const auto scope = strategy.scope();
    const Variable v(constant(1.));
    for (const auto& ops : all_kinds()) {
      EXPECT_THAT(copies_of(ops->reduce(ReduceOp::MEAN, v, v)), ElementsAre(1, 1));
      EXPECT_THAT(copies_of(ops->reduce(ReduceOp::SUM, v, "CPU:0")), ElementsAre(2));
    }
  }
}

TEST(CrossDeviceOps, OneValueThatIsThereAlreadyIsItself) {
  const LogicalCpus cpus(1);
  const Tensor value = number(5);
  for (const auto& ops : all_kinds()) {
    EXPECT_TRUE(ops->reduce(ReduceOp::MEAN, value, "CPU:0").item().is_same(value));
  }
}

TEST(CrossDeviceOps, ABatchIsEveryPairByItself) {
  const LogicalCpus cpus(2);
  const PerReplica<Tensor> matrix({constant({{1., 2.}, {3., 4.}}), constant({{4., 3.}, {2., 0.}})});
  const PerReplica<Tensor> row({constant({1.}), constant({2.})});
  const PerReplica<Tensor> doubles({number(1), number(0.5)});
  const PerReplica<Tensor> counts({constant({1, 2}), constant({3, 5})});
  for (const auto& ops : all_kinds()) {
    const auto sums = ops->batch_reduce(
        ReduceOp::SUM,
        {{matrix, matrix}, {row, row}, {doubles, doubles}, {counts, counts}, {row, "CPU:1"}});
    ASSERT_THAT(sums, SizeIs(5));
    EXPECT_TRUE(sums[0].value(1).equal(constant({{5., 5.}, {5., 4.}})));
    EXPECT_TRUE(sums[1].value(0).equal(constant({3.})));
    EXPECT_EQ(sums[2].value(1).item<double>(), 1.5);
    EXPECT_TRUE(sums[3].value(0).equal(constant({4, 7})));
    EXPECT_THAT(sums[4], SizeIs(1));
  }
}

// From the original's cross_device_ops_test: {1:[1,2]} and {1:[3,4], 3:[5,6]}.
TEST(CrossDeviceOps, RowsOfIndexedSlicesComeTogether) {
  const LogicalCpus cpus(2);
  const PerReplica<IndexedSlices> rows(
      {{.values = constant({{1., 2.}}), .indices = constant({1}), .dense_shape = {{5, 2}}},
       {.values = constant({{3., 4.}, {5., 6.}}),
        .indices = constant({1, 3}),
        .dense_shape = {{5, 2}}}});
  const auto dense = [](const IndexedSlices& slices) {
    return at::sparse_coo_tensor(slices.indices.to(int64).unsqueeze(0), slices.values,
                                 *slices.dense_shape)
        .to_dense();
  };
  for (const auto& ops : all_kinds()) {
    const auto sum = ops->reduce(ReduceOp::SUM, rows, "CPU:1");
    EXPECT_TRUE(
        dense(sum.item()).equal(constant({{0., 0.}, {4., 6.}, {0., 0.}, {5., 6.}, {0., 0.}})));
    const auto mean = ops->reduce(ReduceOp::MEAN, rows, "CPU:1");
    EXPECT_TRUE(
        dense(mean.item()).equal(constant({{0., 0.}, {2., 3.}, {0., 0.}, {2.5, 3.}, {0., 0.}})));
  }
}

TEST(CrossDeviceOps, SparseTensorsKeepTheirRows) {
  const LogicalCpus cpus(2);
  const auto row = [](int id, double value) {
    return at::sparse_coo_tensor(constant({{id}}).to(int64), constant({{value, value}}), {4, 2});
  };
  const PerReplica<Tensor> sparse({row(2, 1), row(2, 4)});
  for (const auto& ops : all_kinds()) {
    const Tensor sum = ops->reduce(ReduceOp::SUM, sparse, sparse).value(1);
    EXPECT_EQ(sum._nnz(), 2);
    EXPECT_EQ(sum.to_dense()[2][0].item<double>(), 5);
    const Tensor mean = ops->reduce(ReduceOp::MEAN, sparse, sparse).value(0);
    EXPECT_EQ(mean.to_dense()[2][1].item<double>(), 2.5);
  }
}

TEST(CrossDeviceOps, RefuseWhatCannotBeReduced) {
  const LogicalCpus cpus(2);
  const PerReplica<Tensor> two({number(1), number(2)});
  for (const auto& ops : all_kinds()) {
    const auto reduce = [&](const PerReplica<Tensor>& value, const Destinations& to) {
      return refused([&] { ops->reduce(ReduceOp::SUM, value, to); });
    };
    EXPECT_THAT(reduce(PerReplica<Tensor>(), two), HasSubstr("at least one component"));
    EXPECT_THAT(reduce(PerReplica<Tensor>({number(1), Tensor()}), two),
                HasSubstr("component 1 of a value to reduce is undefined"));
    EXPECT_THAT(reduce(PerReplica<Tensor>({number(1), constant({1., 2.}).to(float64)}), two),
                HasSubstr("[2]"));
    EXPECT_THAT(refused([&] { ops->broadcast(Tensor(), two); }), HasSubstr("undefined"));
  }
  EXPECT_THAT(refused([] { Destinations{PerReplica<Tensor>()}; }), HasSubstr("destination"));
  EXPECT_THAT(refused([] { Destinations{"CPU:9"}; }), HasSubstr("CPU:9"));
  EXPECT_THAT(refused([] { Destinations{Tensor()}; }), HasSubstr("undefined"));
  EXPECT_THAT(refused([] { NcclAllReduce{-1}; }),
              HasSubstr("NCCL all-reduce requires num_packs >= 0, but -1 is specified"));
  EXPECT_THAT(refused([] { HierarchicalCopyAllReduce{-2}; }), HasSubstr("num_packs >= 0"));
  EXPECT_THAT(refused([] { ReductionToOneDevice{"GPU:3"}; }), HasSubstr("GPU:3"));
}

TEST(ReductionToOneDevice, AccumulatesWithTheGivenFunction) {
  const LogicalCpus cpus(2);
  const ReductionToOneDevice product(
      "CPU:1", [](const std::vector<Tensor>& values) { return values[0] * values[1]; });
  const PerReplica<Tensor> two({number(3), number(5)});
  EXPECT_THAT(copies_of(product.reduce(ReduceOp::SUM, two, two)), ElementsAre(15, 15));
  EXPECT_THAT(copies_of(product.reduce(ReduceOp::MEAN, two, two)), ElementsAre(7.5, 7.5));
  const ReductionToOneDevice wrong("", [](const std::vector<Tensor>&) { return Tensor(); });
  EXPECT_THAT(refused([&] { wrong.reduce(ReduceOp::SUM, two, two); }),
              HasSubstr("accumulation_fn made undefined tensor"));
}

TEST(NcclAllReduce, RefusesValuesOfHostsAndFallsBackWhereTheOriginalDoes) {
  const LogicalCpus cpus(2);
  const NcclAllReduce ops;
  const PerReplica<Tensor> two({number(3), number(5)});
  EXPECT_THAT(refused([&] { ops.reduce(ReduceOp::SUM, two, two); }),
              HasSubstr("NCCL adds values on GPUs, each on one of its own"));
  EXPECT_THAT(copies_of(ops.reduce(ReduceOp::SUM, two, "CPU:1")), ElementsAre(8));
}

TEST(ChooseCrossDeviceOps, TakesOneDeviceWhereThereAreOthersThanGpus) {
  const LogicalCpus cpus(2);
  const auto ops = choose_cross_device_ops({"CPU:0", "CPU:1"});
  EXPECT_NE(dynamic_cast<const ReductionToOneDevice*>(ops.get()), nullptr);
}

// A strategy uses the object for all that it reduces.
TEST(CrossDeviceOps, OfAStrategyReduceEverythingThatItReduces) {
  int calls = 0;
  const auto ops =
      std::make_shared<ReductionToOneDevice>("", [&](const std::vector<Tensor>& values) {
        ++calls;
        return values[0] + values[1] + 100;  // nobody else would
      });
  const LogicalCpus cpus(2);
  const MirroredStrategy strategy({"CPU:0", "CPU:1"}, {.cross_device_ops = ops});
  auto scope = strategy.scope();
  const Variable v(number(0), {.aggregation = VariableAggregation::SUM});
  const PerReplica<Tensor> two({number(1), number(2)});
  EXPECT_EQ(strategy.reduce(ReduceOp::SUM, two).item<double>(), 103);
  EXPECT_THAT(copies_of(strategy.extended().reduce_to(ReduceOp::SUM, two, v)),
              ElementsAre(103, 103));
  EXPECT_EQ(calls, 2);
  scope.close();
  const auto sums = strategy.run([&](ReplicaContext& context) {
    v.assign(number(5));
    return context.all_reduce(ReduceOp::SUM, number(1 + context.replica_id_in_sync_group()));
  });
  EXPECT_THAT(values(sums), ElementsAre(103, 103));
  EXPECT_THAT(components(v), ElementsAre(110, 110));
}

}  // namespace
}  // namespace cohort::distribute
