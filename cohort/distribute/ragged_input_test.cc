// RaggedTensors and sparse tensors as distributed input.
#include <ATen/ops/ones.h>
#include <ATen/ops/scalar_tensor.h>
#include <gmock/gmock.h>

#include "cohort/core/ragged_tensor.h"
#include "cohort/distribute/distributed_dataset.h"
#include "cohort/distribute/strategy.h"
#include "cohort/distribute/testing_devices.h"

namespace cohort::distribute {
namespace {

// 20 rows, of which row i has i % 4 values i: ragged, sparse and dense.
data::Dataset twenty_rows() {
  std::vector<Tensor> rows;
  for (int64_t i = 0; i < 20; ++i) rows.push_back(at::ones({i % 4}) * static_cast<double>(i));
  const RaggedTensor ragged = RaggedTensor::from_rows(rows);
  return data::Dataset::from_tensor_slices(
      dict({{"dense", ragged.to_tensor()}, {"ragged", ragged}, {"sparse", ragged.to_sparse()}}));
}

struct Sums {
  double dense = 0;
  double ragged = 0;
  double sparse = 0;
  int steps = 0;
};

Sums sums_of(const data::Dataset& dataset) {
  const MirroredStrategy strategy = mirrored(2);
  Sums sums;
  for (const auto& batch : strategy.experimental_distribute_dataset(dataset)) {
    const auto results = strategy.run(
        [](const Structure& features) {
          const RaggedTensor ragged = features["ragged"];
          const Tensor& sparse = features["sparse"].tensor();
          EXPECT_EQ(sparse.layout(), at::kSparse) << "also of a batch without rows";
          EXPECT_EQ(ragged.nrows(), sparse.size(0));
          return tuple(features["dense"].tensor().sum(), ragged.values().sum(),
                       sparse._values().sum());
        },
        batch);
    const auto reduced = [&](size_t member) {
      return strategy.reduce(ReduceOp::SUM, results[member]).item<double>();
    };
    sums.dense += reduced(0);
    sums.ragged += reduced(1);
    sums.sparse += reduced(2);
    ++sums.steps;
  }
  return sums;
}

TEST(RaggedInput, EveryValueArrivesOnce) {
  const Sums sums = sums_of(twenty_rows().batch(8));
  EXPECT_EQ(sums.dense, 310);
  EXPECT_EQ(sums.ragged, 310);
  EXPECT_EQ(sums.sparse, 310);
  EXPECT_EQ(sums.steps, 3);
}

TEST(RaggedInput, WithoutTheRemainder) {
  const Sums sums = sums_of(twenty_rows().batch(8, {.drop_remainder = true}));
  EXPECT_EQ(sums.dense, 200);
  EXPECT_EQ(sums.ragged, 200);
  EXPECT_EQ(sums.sparse, 200);
  EXPECT_EQ(sums.steps, 2);
}

// The last batch has one row for two replicas.
TEST(RaggedInput, AReplicaWithoutRowsGetsEmptyOnes) {
  const Sums sums = sums_of(twenty_rows().take(9).batch(8));
  EXPECT_EQ(sums.steps, 2);
  EXPECT_EQ(sums.ragged, sums.dense);
  EXPECT_EQ(sums.sparse, sums.dense);
}

TEST(RaggedInput, ReplicasGetWholeRows) {
  const MirroredStrategy strategy = mirrored(2);
  auto iterator = strategy.experimental_distribute_dataset(twenty_rows().batch(8)).iterator();
  const auto batch = *iterator.next();
  const RaggedTensor second = batch.member("ragged").value(1);
  EXPECT_EQ(internal::str(second), "<RaggedTensor [[], [5.0], [6.0, 6.0], [7.0, 7.0, 7.0]]>");
  EXPECT_EQ(batch.member("ragged").size(), 2U);
}

TEST(RaggedInput, OfSeveralInputWorkers) {
  const MirroredStrategy strategy = mirrored(2);
  double sum = 0;
  auto dataset = strategy.distribute_datasets_from_function([](const InputContext& context) {
    return twenty_rows().shard(context.num_input_pipelines, context.input_pipeline_id).batch(4);
  });
  for (const auto& batch : dataset) {
    for (const Structure& piece : batch.values()) {
      sum += RaggedTensor(piece["ragged"]).values().sum().item<double>();
    }
  }
  EXPECT_EQ(sum, 310);
}

}  // namespace
}  // namespace cohort::distribute
