// RaggedTensors and sparse tensors as distributed input.
#include <ATen/ops/arange.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/tensor.h>
#include <c10/core/GradMode.h>
#include <gmock/gmock.h>

#include "cohort/core/structure/ragged_tensor.h"
#include "cohort/distribute/input/distributed_dataset.h"
#include "cohort/distribute/strategies/replica_context.h"
#include "cohort/distribute/strategies/strategy.h"
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

// Replica r has a row of two values and r rows of one.
Structure ragged_of(int replica) {
  std::vector<int64_t> lengths(static_cast<size_t>(replica) + 1, 1);
  lengths[0] = 2;
  return dict(
      {{"ids", RaggedTensor::from_row_lengths(at::arange(replica + 2) + 10 * replica, lengths)}});
}
constexpr const char* kGathered = "{'ids': <RaggedTensor [[0, 1], [10, 11], [12]]>}";

TEST(RaggedInput, AreGatheredRowByRow) {
  const MirroredStrategy strategy = mirrored(2);
  const auto values = strategy.run(
      [](ReplicaContext& context) { return ragged_of(context.replica_id_in_sync_group()); });
  EXPECT_EQ(internal::str(strategy.gather(values, 0)), kGathered);
  EXPECT_THROW(strategy.gather(values, 1), UnimplementedError);
  EXPECT_THROW(strategy.reduce(ReduceOp::SUM, values), UnimplementedError);
  const auto in_steps = strategy.run([](ReplicaContext& context) {
    const Structure mine = ragged_of(context.replica_id_in_sync_group());
    EXPECT_THROW(context.all_gather(mine, 1), UnimplementedError);
    EXPECT_THROW(context.all_reduce(ReduceOp::SUM, mine), UnimplementedError);
    return context.all_gather(mine, 0);
  });
  for (const Structure& all : in_steps.values()) EXPECT_EQ(internal::str(all), kGathered);
}

TEST(RaggedInput, RowsOfRowsAreGatheredWhole) {
  const MirroredStrategy strategy = mirrored(2);
  const auto values = strategy.run([](ReplicaContext& context) -> Structure {
    const int64_t replica = context.replica_id_in_sync_group();
    const auto words = RaggedTensor::from_row_lengths(at::arange(3) + 10 * replica, {1, 2});
    return RaggedTensor::from_row_splits(words, at::tensor(std::vector<int64_t>{0, replica, 2}));
  });
  EXPECT_EQ(internal::str(strategy.gather(values, 0)),
            "<RaggedTensor [[], [[0], [1, 2]], [[10]], [[11, 12]]]>");
  // Batches of batches are cut between their rows.
  const auto twice = twenty_rows().batch(2).batch(4);
  double sum = 0;
  for (const auto& batch : strategy.experimental_distribute_dataset(twice)) {
    const auto sums = strategy.run(
        [](const Structure& features) {
          const RaggedTensor ragged = features["ragged"];
          EXPECT_EQ(ragged.ragged_rank(), 2);
          return ragged.values().sum();
        },
        batch);
    sum += strategy.reduce(ReduceOp::SUM, sums).item<double>();
  }
  EXPECT_EQ(sum, 310);
}

TEST(RaggedInput, ResultsHaveNoGraph) {
  const MirroredStrategy strategy = mirrored(2);
  const auto results = strategy.run([] {
    const c10::AutoGradMode recording(true);
    const Tensor values = at::ones({2}).set_requires_grad(true) * 2;
    EXPECT_TRUE(values.requires_grad());
    struct Result : Tensor {
      explicit Result(Tensor value) : Tensor(std::move(value)) {}
    };
    return std::tuple(RaggedTensor::from_row_lengths(values, {1, 1}), Result(values.sum()));
  });
  for (const auto& [ragged, sum] : results.values()) {
    EXPECT_FALSE(ragged.values().requires_grad());
    EXPECT_EQ(ragged.nrows(), 2);
    EXPECT_FALSE(sum.requires_grad());
    EXPECT_EQ(sum.template item<double>(), 4);
  }
}

TEST(RaggedInput, MembersOfABatch) {
  const MirroredStrategy strategy = mirrored(2);
  auto iterator = strategy.experimental_distribute_dataset(twenty_rows().batch(8)).iterator();
  const auto batch = *iterator.next();
  const PerReplica<Tensor> sparse = batch["sparse"];
  EXPECT_EQ(sparse.value(1).layout(), at::kSparse);
  try {
    batch["ragged"];
    ADD_FAILURE() << "no error";
  } catch (const InvalidArgumentError& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("this is a RaggedTensor"));
  }
  EXPECT_THAT(internal::str(batch),
              testing::AllOf(testing::Not(testing::HasSubstr("$")),
                             testing::HasSubstr("1: <RaggedTensor [[], [5.0], [6.0")));
}

// COO tensors that a map makes.
TEST(RaggedInput, SparseResultsOfAMap) {
  const MirroredStrategy strategy = mirrored(2);
  const auto rows = data::Dataset::from_tensor_slices(Tensor(at::ones({9, 3})));
  const auto to_sparse = [](const Tensor& x) { return x.to_sparse(); };
  for (const auto& dataset : {rows.batch(4).map(to_sparse), rows.map(to_sparse).batch(4)}) {
    double sum = 0;
    for (const auto& batch : strategy.experimental_distribute_dataset(dataset)) {
      for (const Structure& piece : batch.values()) {
        EXPECT_EQ(piece.tensor().layout(), at::kSparse) << "also of a batch without rows";
        sum += piece.tensor()._values().sum().item<double>();
      }
    }
    EXPECT_EQ(sum, 27);
  }
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
