#include "cohort/distribute/input/distributed_dataset.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cohort/core/observe/monitoring.h"
#include "cohort/core/testing_errors.h"
#include "cohort/distribute/strategies/context.h"
#include "cohort/distribute/strategies/one_device_strategy.h"
#include "cohort/distribute/testing_batches.h"
#include "cohort/distribute/testing_devices.h"
#include "cohort/distribute/testing_tasks.h"

namespace cohort::distribute {
namespace {

using data::Dataset;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::string> split(int replicas, const Dataset& dataset) {
  return all(mirrored(replicas).experimental_distribute_dataset(dataset));
}

TEST(DistributedDataset, SplitsBatchesByTheGuidesRule) {
  EXPECT_THAT(split(2, Dataset::range(6).batch(4)), ElementsAre("[0,1][2,3]", "[4][5]"));
  EXPECT_THAT(split(5, Dataset::range(4).batch(4)), ElementsAre("[0][1][2][3][]"));
  EXPECT_THAT(split(3, Dataset::range(8).batch(4)), ElementsAre("[0,1][2,3][]", "[4,5][6,7][]"));
  EXPECT_THAT(split(4, Dataset::range(9).batch(4)),
              ElementsAre("[0][1][2][3]", "[4][5][6][7]", "[8][][][]"));
  EXPECT_THAT(split(2, Dataset::range(9).batch(4, {.drop_remainder = true})),
              ElementsAre("[0,1][2,3]", "[4,5][6,7]"));
  EXPECT_THAT(split(1, Dataset::range(3).batch(2)), ElementsAre("[0,1]", "[2]"));
  EXPECT_THAT(split(2, Dataset::range(0).batch(2)), ElementsAre());
}

TEST(DistributedDataset, GuidesHundredOnes) {
  const MirroredStrategy strategy = mirrored(4);
  const auto row = at::ones({1});
  const auto dataset = strategy.experimental_distribute_dataset(
      Dataset::from_tensors(tuple(row, row)).repeat(100).batch(16));
  int steps = 0;
  std::vector<int64_t> rows;
  for (const auto& batch : dataset) {
    ++steps;
    rows.push_back(batch[0].value(3).size(0));
    const auto result = strategy.run(
        [](const Tensor& features, const Tensor& labels) { return labels - 0.3 * features; },
        batch);
    for (const Tensor& values : result.values()) {
      EXPECT_NEAR(values.min().item<double>(), 0.7, 1e-6);
    }
  }
  EXPECT_EQ(steps, 7);
  EXPECT_EQ(rows.front(), 4);
  EXPECT_EQ(rows.back(), 1);
}

// TensorFlow's testCacheAcrossIteration: what is cached is shuffled once.
TEST(DistributedDataset, PassesOverACacheAreEqual) {
  const auto expect_equal_passes = [](const Strategy& strategy) {
    const auto distributed =
        strategy.experimental_distribute_dataset(Dataset::range(16).shuffle(16).cache().batch(4));
    const std::vector<std::string> first = all(distributed);
    EXPECT_EQ(first.size(), 4u);
    EXPECT_EQ(all(distributed), first);
  };
  expect_equal_passes(mirrored(2));
  run_all_tasks(2, 1, [&](const Strategy& strategy, int) { expect_equal_passes(strategy); });
}

TEST(DistributedDataset, PiecesAreSlicesOfTheBatch) {
  const MirroredStrategy strategy = mirrored(2);
  const Tensor rows = at::arange(8);
  for (const auto& batch :
       strategy.experimental_distribute_dataset(Dataset::from_tensor_slices(rows).batch(8))) {
    EXPECT_TRUE(batch.value(0).tensor().is_alias_of(batch.value(1).tensor()));
  }
}

TEST(DistributedDataset, StringsAreSplitToo) {
  EXPECT_THAT(split(2, Dataset::from_tensor_slices(StringTensor({"a", "b", "c"})).batch(3)),
              ElementsAre("[a,b][c]"));
}

TEST(DistributedDataset, UnbatchedElementsNameBatch) {
  const MirroredStrategy strategy = mirrored(2);
  try {
    strategy.experimental_distribute_dataset(Dataset::range(4));
    FAIL() << "distributed";
  } catch (const InvalidArgumentError& error) {
    EXPECT_THAT(error.what(), HasSubstr("call `batch`"));
  }
}

// A vector that is an example is not cut along its features.
TEST(DistributedDataset, UnbatchedVectorsAreNotSplit) {
  const MirroredStrategy strategy = mirrored(2);
  const Dataset vectors = Dataset::from_tensor_slices(tuple(at::zeros({6, 4}), at::zeros({6, 4})))
                              .shuffle(6, {.seed = 1});
  EXPECT_THAT(
      thrown<InvalidArgumentError>([&] { strategy.experimental_distribute_dataset(vectors); }),
      HasSubstr("call `.batch(n)` on the dataset first"));
  EXPECT_EQ(mirrored(1).experimental_distribute_dataset(vectors).cardinality(), 6);
}

// One replica gets elements as they are.
TEST(DistributedDataset, OneReplicaNeedsNoBatches) {
  const MirroredStrategy strategy = mirrored(1);
  int64_t expected = 0;
  for (const auto& element : strategy.experimental_distribute_dataset(Dataset::range(3))) {
    EXPECT_EQ(element.value(0).tensor().item<int64_t>(), expected++);
  }
  EXPECT_EQ(expected, 3);
}

TEST(DistributedDataset, LeavesWithDifferentRowsAreAnError) {
  const MirroredStrategy strategy = mirrored(2);
  const auto dataset = strategy.experimental_distribute_dataset(
      Dataset::from_tensors(tuple(at::ones({4}), at::ones({3}))));
  try {
    dataset.iterator().next();
    FAIL() << "split";
  } catch (const InvalidArgumentError& error) {
    EXPECT_THAT(error.what(), HasSubstr("[1] has 3 rows"));
  }
}

TEST(DistributedDataset, SpecsAndCardinality) {
  const auto shape = [](const DistributedDataset& dataset) {
    return *dataset.element_spec().component.leaf().shape();
  };
  const auto batched = Dataset::range(10).batch(4, {.drop_remainder = true});
  const auto dataset = mirrored(2).experimental_distribute_dataset(batched);
  EXPECT_EQ(dataset.cardinality(), 2);
  EXPECT_EQ(dataset.element_spec().num_replicas, 2U);
  EXPECT_THAT(shape(dataset), ElementsAre(2));
  EXPECT_THAT(shape(mirrored(3).experimental_distribute_dataset(batched)),
              ElementsAre(kUnknownDim));
  EXPECT_EQ(mirrored(3).experimental_distribute_dataset(batched).cardinality(), 2);
  EXPECT_EQ(mirrored(3).experimental_distribute_dataset(batched.repeat()).cardinality(),
            data::kInfiniteCardinality);
  LogicalCpus cpus(1);
  const auto one = OneDeviceStrategy("CPU:0").experimental_distribute_dataset(batched);
  EXPECT_THAT(shape(one), ElementsAre(4));
  EXPECT_EQ(one.iterator().element_spec(), one.element_spec());
}

TEST(DistributedDataset, UnderOtherStrategiesHasOneComponent) {
  const auto dataset = Dataset::range(4).batch(2);
  EXPECT_THAT(all(get_strategy().experimental_distribute_dataset(dataset)),
              ElementsAre("[0,1]", "[2,3]"));
  LogicalCpus cpus(1);
  EXPECT_THAT(all(OneDeviceStrategy("CPU:0").experimental_distribute_dataset(dataset)),
              ElementsAre("[0,1]", "[2,3]"));
}

TEST(DistributedDataset, TheDefaultStrategyGivesTheDatasetAsItIs) {
  const auto dataset = get_strategy().experimental_distribute_dataset(Dataset::range(3));
  int64_t next = 0;
  for (const auto& batch : dataset) EXPECT_EQ(batch.item().tensor().item<int64_t>(), next++);
  EXPECT_EQ(next, 3);
}

TEST(DistributedDataset, AGeneratorsElementIsAGlobalBatch) {
  const MirroredStrategy strategy = mirrored(4);
  const auto dataset = strategy.experimental_distribute_dataset(
      Dataset::from_generator([] { return std::optional<Tensor>(at::ones({4})); }));
  const auto batch = dataset.iterator().get_next();
  for (const Structure& piece : batch.values()) {
    EXPECT_THAT(piece.leaf().sizes(), ElementsAre(1));
  }
}

TEST(DistributedDataset, ReadsAheadAsManyPiecesAsSpecified) {
  const MirroredStrategy strategy = mirrored(3);
  const auto ends_with = [&](const InputOptions& options) {
    const std::string text =
        strategy.experimental_distribute_dataset(Dataset::range(8).batch(4), options).explain();
    const size_t worker = text.find("worker 0");
    const size_t graph = text.find('\n', worker) + 1;
    return text.substr(graph, text.find(':', graph) - graph);
  };
  EXPECT_EQ(ends_with({}),
            "prefetch(buffer_size=6, small_bytes=1048576)");  // a step, and one for each replica
  EXPECT_EQ(ends_with({.experimental_per_replica_buffer_size = 3}),
            "prefetch(buffer_size=12, small_bytes=1048576)");
  EXPECT_EQ(ends_with({.experimental_per_replica_buffer_size = 0}), "split_batches(num_pieces=3)");
}

TEST(DistributedDataset, WithoutFetchingBatchesAreTheSame) {
  const MirroredStrategy strategy = mirrored(2);
  EXPECT_THAT(all(strategy.experimental_distribute_dataset(
                  Dataset::range(4).batch(4), {.experimental_fetch_to_device = false})),
              ElementsAre("[0,1][2,3]"));
}

TEST(DistributedDataset, ReducesOverItsBatches) {
  const MirroredStrategy strategy = mirrored(2);
  const auto dataset = strategy.experimental_distribute_dataset(Dataset::range(6).batch(4));
  const std::string joined = dataset.reduce(
      std::string("="), [](const std::string& state, const PerReplica<Structure>& batch) {
        return state + text(batch);
      });
  EXPECT_EQ(joined, "=[0,1][2,3][4][5]");
}

TEST(DistributedDataset, CanBeDividedFurther) {
  const MirroredStrategy strategy = mirrored(2);
  const auto dataset = strategy.experimental_distribute_dataset(
      with_policy(Dataset::range(12).batch(2), data::AutoShardPolicy::DATA));
  EXPECT_THAT(all(dataset.auto_shard(3, 1)), ElementsAre("[1][4]", "[7][10]"));
  EXPECT_THROW(dataset.auto_shard(3, 3), InvalidArgumentError);
}

TEST(DistributedDataset, CountsItsCalls) {
  const auto calls = [](const char* function) {
    return monitoring::value("distribution_strategy_input_api_counter",
                             {"MirroredStrategy", function});
  };
  const MirroredStrategy strategy = mirrored(2);
  EXPECT_EQ(monitoring::value("distribution_strategy_replica_gauge", {"MirroredStrategy"}), 2);
  const int64_t before = calls("distribute_dataset");
  const int64_t from_function = calls("distribute_datasets_from_function");
  strategy.experimental_distribute_dataset(Dataset::range(6).batch(4));
  EXPECT_EQ(calls("distribute_dataset"), before + 1);
  strategy.distribute_datasets_from_function(
      [](const InputContext&) { return Dataset::range(6).batch(4); });
  EXPECT_EQ(calls("distribute_datasets_from_function"), from_function + 1);
}

TEST(DistributedDataset, ChecksItsOptions) {
  const MirroredStrategy strategy = mirrored(2);
  const auto dataset = Dataset::range(4).batch(2);
  const auto with = [&](const InputOptions& options) {
    return strategy.experimental_distribute_dataset(dataset, options);
  };
  EXPECT_THROW(with({.experimental_replication_mode = InputReplicationMode::PER_REPLICA}),
               UnimplementedError);
  EXPECT_THROW(with({.experimental_place_dataset_on_device = true}), InvalidArgumentError);
  EXPECT_THROW(with({.experimental_per_replica_buffer_size = -1}), InvalidArgumentError);
  EXPECT_THAT(all(with({.experimental_per_replica_buffer_size = 0})),
              ElementsAre("[0][1]", "[2][3]"));
}

}  // namespace
}  // namespace cohort::distribute
