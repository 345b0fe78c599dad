#include "cohort/distribute/distributed_dataset.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/ones.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "cohort/distribute/one_device_strategy.h"
#include "cohort/distribute/testing_devices.h"

namespace cohort::distribute {
namespace {

using data::Dataset;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// "[0,1][2]": the elements of each piece.
std::string text(const PerReplica<Structure>& batch) {
  std::ostringstream out;
  for (const Structure& piece : batch.values()) {
    out << '[';
    for (int64_t i = 0; i < piece.leaf().sizes()[0]; ++i) {
      if (i > 0) out << ',';
      if (piece.leaf().is_strings()) {
        out << piece.strings()[i];
      } else {
        out << piece.tensor()[i].item<int64_t>();
      }
    }
    out << ']';
  }
  return out.str();
}
std::vector<std::string> all(const DistributedDataset& dataset) {
  std::vector<std::string> batches;
  for (const auto& batch : dataset) batches.push_back(text(batch));
  return batches;
}
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

TEST(DistributedDataset, PiecesAreSlicesOfTheBatch) {
  const MirroredStrategy strategy = mirrored(2);
  const Tensor rows = at::arange(8);
  for (const auto& batch : strategy.experimental_distribute_dataset(
           Dataset::from_tensor_slices(rows).batch(8))) {
    EXPECT_TRUE(batch.value(0).tensor().is_alias_of(batch.value(1).tensor()));
  }
}

TEST(DistributedDataset, StringsAreSplitToo) {
  EXPECT_THAT(split(2, Dataset::from_tensor_slices(StringTensor({"a", "b", "c"})).batch(3)),
              ElementsAre("[a,b][c]"));
}

TEST(DistributedIterator, HasEveryFormOfNext) {
  const MirroredStrategy strategy = mirrored(2);
  const auto dataset = strategy.experimental_distribute_dataset(Dataset::range(4).batch(2));
  DistributedIterator it = dataset.iterator();
  EXPECT_EQ(text(it.get_next()), "[0][1]");
  EXPECT_EQ(text(*it.get_next_as_optional()), "[2][3]");
  EXPECT_FALSE(it.next());
  EXPECT_THROW(it.get_next(), OutOfRangeError);
}

TEST(DistributedIterator, ResumesExactly) {
  const MirroredStrategy strategy = mirrored(3);
  const auto dataset = strategy.experimental_distribute_dataset(
      Dataset::range(50).shuffle(50, {.seed = 3}).batch(8).repeat(2));
  DistributedIterator it = dataset.iterator();
  for (int i = 0; i < 9; ++i) it.get_next();
  const auto state = data::IteratorState::parse(it.state().serialize());
  DistributedIterator resumed = dataset.iterator();
  resumed.restore(state);
  for (int i = 9; i < 14; ++i) EXPECT_EQ(text(resumed.get_next()), text(it.get_next()));
  EXPECT_FALSE(resumed.next());
  EXPECT_FALSE(it.next());
}

TEST(DistributedIterator, NextInAReplicaIsRefused) {
  const MirroredStrategy strategy = mirrored(2);
  DistributedIterator it =
      strategy.experimental_distribute_dataset(Dataset::range(4).batch(2)).iterator();
  EXPECT_THROW(strategy.run([&] { it.next(); }), FailedPreconditionError);
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
  const auto batched = Dataset::range(10).batch(4, {.drop_remainder = true});
  const auto dataset = mirrored(2).experimental_distribute_dataset(batched);
  EXPECT_EQ(dataset.cardinality(), 2);
  EXPECT_EQ(dataset.element_spec().num_replicas, 2U);
  EXPECT_EQ(dataset.element_spec().component.leaf().shape(),
            (std::vector<int64_t>{kUnknownDim}));
  LogicalCpus cpus(1);
  const auto one = OneDeviceStrategy("CPU:0").experimental_distribute_dataset(batched);
  EXPECT_EQ(one.element_spec().component.leaf().shape(), (std::vector<int64_t>{4}));
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
