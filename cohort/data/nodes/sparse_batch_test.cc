#include <ATen/ops/arange.h>
#include <ATen/ops/ones.h>
#include <gmock/gmock.h>

#include "cohort/core/structure/sparse_tensor.h"
#include "cohort/core/testing_errors.h"
#include "cohort/data/ragged_batch.h"
#include "cohort/data/sharding/auto_shard.h"
#include "cohort/data/test_util.h"

namespace cohort::data {
namespace {

using internal::expect_error;
using internal::str;
using testing::ElementsAre;
using testing::HasSubstr;

// 0 | 0 1 | 0 1 2 | ...
Dataset sequences(int64_t n) {
  return Dataset::range(n).map([](int64_t i) { return Tensor(at::arange(i + 1)); },
                               {.output_spec = TensorSpec({kUnknownDim}, int64)});
}

std::vector<std::string> sparse_texts(const Dataset& dataset) {
  std::vector<std::string> all;
  for (const Structure& batch : dataset) all.push_back(str(SparseTensor(batch)));
  return all;
}

TEST(SparseBatch, KeepsEveryValueInItsRow) {
  const Dataset batches = sequences(3).sparse_batch(2, {4});
  EXPECT_THAT(sparse_texts(batches),
              ElementsAre("SparseTensor(indices=[[0, 0], [1, 0], [1, 1]], values=[0, 0, 1], "
                          "dense_shape=[2,4])",
                          "SparseTensor(indices=[[0, 0], [0, 1], [0, 2]], values=[0, 1, 2], "
                          "dense_shape=[1,4])"));
  EXPECT_EQ(batches.cardinality(), 2);
  EXPECT_EQ(str(batches.element_spec()),
            "SparseTensorSpec(TensorSpec(shape=(None, 4), dtype=int64))");
  for (const Structure& batch : batches) {
    EXPECT_EQ(batches.element_spec().first_mismatch(batch), std::nullopt);
  }
  EXPECT_THAT(batches.explain(), HasSubstr("sparse_batch(batch_size=2, row_shape=[4]): Sparse"));
  EXPECT_EQ(sparse_texts(sequences(3).apply(experimental::dense_to_sparse_batch(2, {4}))),
            sparse_texts(batches));
}

TEST(SparseBatch, UnknownSizesAreTheLongestOfTheBatch) {
  const Dataset pictures = Dataset::range(2).map(
      [](int64_t i) {
        return Tensor(at::ones({i + 1, 3 - i}));
      },
      {.output_spec = TensorSpec({kUnknownDim, kUnknownDim}, float32)});
  const SparseTensor batch = *pictures.sparse_batch(2, {kUnknownDim, 5}).iterator().next();
  EXPECT_THAT(batch.dense_shape(), ElementsAre(2, 2, 5));
  EXPECT_EQ(batch.to_dense().sum().item<double>(), 7);
  const SparseTensor scalars = *Dataset::range(3).sparse_batch(3, {}).iterator().next();
  EXPECT_EQ(str(scalars),
            "SparseTensor(indices=[[0], [1], [2]], values=[0, 1, 2], dense_shape=[3])");
}

TEST(SparseBatch, RowsComeApartAgain) {
  const Dataset rows = sequences(5).sparse_batch(3, {5}).unbatch();
  EXPECT_EQ(rows.iterator().next()->tensor().sizes(), (std::vector<int64_t>{5}));
  EXPECT_EQ(sparse_texts(rows.batch(2)), sparse_texts(sequences(5).sparse_batch(2, {5})));
  const Dataset scalars = Dataset::range(4).sparse_batch(3, {}).unbatch();
  EXPECT_EQ(scalars.element_spec(), Dataset::range(4).element_spec());
  EXPECT_THAT(ints(scalars), ElementsAre(0, 1, 2, 3));
}

TEST(SparseBatch, WhatDoesNotFitIsRefused) {
  expect_error<InvalidArgumentError>([] { sequences(3).sparse_batch(0, {4}); }, "batch_size is 0");
  expect_error<InvalidArgumentError>([] { sequences(3).sparse_batch(2, {-2}); }, "row_shape is");
  expect_error<InvalidArgumentError>(
      [] {
        sequences(3).sparse_batch(2, {4, 4});
      },
      "of the rank of row_shape");
  expect_error<InvalidArgumentError>([] { sequences(3).enumerate().sparse_batch(2, {4}); },
                                     "one dense tensor of numbers");
  expect_error<InvalidArgumentError>(
      [] { Dataset::from_tensors(StringTensor({"a"})).sparse_batch(2, {1}); },
      "one dense tensor of numbers");
  // The batch of an element that is too large is lost, and no other.
  EXPECT_THAT(
      outcomes(sequences(5).sparse_batch(2, {3})),
      ElementsAre("<sparse int64 [2,3], 3 values>",
                  HasSubstr("element 3 is int64 [4], which does not fit into the row_shape"),
                  HasSubstr("element 4 is int64 [5]")));
  const Dataset guessed = sequences(2).map([](const Tensor& x) { return tuple(x, x); });
  expect_error<InvalidArgumentError>([&] { guessed.sparse_batch(2, {3}).iterator().next(); },
                                     "sparse_batch takes one dense tensor");
}

TEST(SparseBatch, ResumesAndIsDivided) {
  expect_resumable([] { return sequences(7).shuffle(3, {.seed = 2}).sparse_batch(2, {7}); });
  const Dataset batches = sequences(4).sparse_batch(1, {4});
  EXPECT_EQ(sparse_texts(auto_shard(batches, {.num_workers = 2, .index = 1})),
            sparse_texts(batches.shard(2, 1)));
}

}  // namespace
}  // namespace cohort::data
