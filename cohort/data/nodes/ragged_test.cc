// RaggedTensors and sparse tensors in datasets.
#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>

#include "cohort/core/structure/composite.h"
#include "cohort/core/structure/ragged_tensor.h"
#include "cohort/core/testing_errors.h"
#include "cohort/data/ragged_batch.h"
#include "cohort/data/sharding/split_batches.h"
#include "cohort/data/storage/element_codec.h"
#include "cohort/data/test_util.h"
#include "cohort/data/torch_dataset.h"

namespace cohort::data {
namespace {

using internal::expect_error;
using internal::str;
using testing::ElementsAre;

// Row i has i % 4 values i.
RaggedTensor ragged_rows(int64_t rows) {
  std::vector<Tensor> all;
  for (int64_t i = 0; i < rows; ++i) {
    all.push_back(at::ones({i % 4}) * static_cast<double>(i));
  }
  return RaggedTensor::from_rows(all);
}

Dataset sample(int64_t rows) {
  const RaggedTensor ragged = ragged_rows(rows);
  return Dataset::from_tensor_slices(
      dict({{"dense", ragged.to_tensor()}, {"ragged", ragged}, {"sparse", ragged.to_sparse()}}));
}

void expect_equal(const Structure& batch, const Structure& expected) {
  EXPECT_EQ(str(RaggedTensor(batch["ragged"])), str(RaggedTensor(expected["ragged"])));
  EXPECT_TRUE(at::equal(batch["dense"].tensor(), expected["dense"].tensor()));
  EXPECT_TRUE(
      at::equal(batch["sparse"].tensor().to_dense(), expected["sparse"].tensor().to_dense()));
}

// Each part of the batch has the same rows.
void expect_consistent(const Structure& batch) {
  const Tensor dense = batch["dense"].tensor();
  const RaggedTensor ragged = batch["ragged"];
  const Tensor sparse = batch["sparse"].tensor();
  ASSERT_EQ(ragged.nrows(), dense.size(0));
  EXPECT_EQ(sparse.sizes(), dense.sizes());
  EXPECT_TRUE(at::equal(sparse.to_dense(), dense));
  for (int64_t i = 0; i < ragged.nrows(); ++i) {
    const Tensor row = ragged[i].tensor();
    EXPECT_TRUE(at::equal(row, dense[i].slice(0, 0, row.size(0))));
    EXPECT_EQ(row.sum().item<double>(), dense[i].sum().item<double>());
  }
}

TEST(RaggedDataset, ElementsAreRows) {
  auto iterator = sample(6).skip(2).iterator();
  const Structure element = *iterator.next();
  EXPECT_EQ(str(element["ragged"]), "[2.0, 2.0]");
  EXPECT_TRUE(at::equal(element["ragged"].tensor(), at::ones({2}) * 2));
  EXPECT_TRUE(at::equal(element["sparse"].tensor().to_dense(), element["dense"].tensor()));
  EXPECT_EQ(str(sample(6).element_spec()),
            "{'dense': TensorSpec(shape=(3,), dtype=float32), 'ragged': "
            "RaggedTensorSpec(row=TensorSpec(shape=(None,), dtype=float32)), 'sparse': "
            "SparseTensorSpec(TensorSpec(shape=(3,), dtype=float32))}");
}

TEST(RaggedDataset, BatchesAreRagged) {
  const Dataset batches = sample(6).batch(4);
  auto iterator = batches.iterator();
  const Structure first = *iterator.next();
  EXPECT_EQ(str(first["ragged"]), "<RaggedTensor [[], [1.0], [2.0, 2.0], [3.0, 3.0, 3.0]]>");
  expect_consistent(first);
  const Structure last = *iterator.next();
  EXPECT_EQ(RaggedTensor(last["ragged"]).nrows(), 2);
  expect_consistent(last);
  EXPECT_EQ(batches.element_spec().first_mismatch(first), std::nullopt);
  EXPECT_EQ(batches.element_spec().first_mismatch(last), std::nullopt);
  EXPECT_EQ(sample(6).batch(4, {.drop_remainder = true}).element_spec().first_mismatch(first),
            std::nullopt);
}

TEST(RaggedDataset, EveryWayToBatchGivesTheSame) {
  const auto expected = [] {
    std::vector<Structure> all;
    for (const Structure& batch : sample(10).batch(4)) all.push_back(batch);
    return all;
  }();
  const auto same_map = [](const Structure& element) { return element; };
  for (const Dataset& dataset :
       {sample(10).map(same_map).batch(4), sample(10).batch(3).unbatch().batch(4),
        sample(10).batch(3).rebatch(4),
        sample(10).filter([](const Structure&) { return true; }).batch(4),
        sample(10).cache().batch(4), sample(10).prefetch(2).batch(4),
        sample(10).take(5).concatenate(sample(10).skip(5)).batch(4)}) {
    size_t i = 0;
    for (const Structure& batch : dataset) expect_equal(batch, expected.at(i++));
    EXPECT_EQ(i, expected.size());
  }
}

TEST(RaggedDataset, ShufflesWholeRows) {
  double sum = 0;
  for (const Structure& batch : sample(20).shuffle(20, {.seed = 1}).batch(8)) {
    expect_consistent(batch);
    sum += RaggedTensor(batch["ragged"]).values().sum().item<double>();
  }
  EXPECT_EQ(sum, 310);
}

TEST(RaggedDataset, BatchesAreSplitByRows) {
  std::vector<int64_t> rows;
  double sum = 0;
  for (const Structure& piece : split_batches(sample(20).batch(8), 2)) {
    expect_consistent(piece);
    rows.push_back(RaggedTensor(piece["ragged"]).nrows());
    sum += RaggedTensor(piece["ragged"]).values().sum().item<double>();
  }
  EXPECT_THAT(rows, ElementsAre(4, 4, 4, 4, 2, 2));
  EXPECT_EQ(sum, 310);
  expect_error<InvalidArgumentError>(
      [] { split_batches(Dataset::from_tensor_slices(ragged_rows(4)), 2); }, "no batch dimension");
}

TEST(RaggedDataset, EmptyBatchesHaveNoRows) {
  auto iterator = sample(4).batch(4).rebatch({0, 4}).iterator();
  const Structure batch = *iterator.next();
  EXPECT_EQ(RaggedTensor(batch["ragged"]).nrows(), 0);
  EXPECT_EQ(batch["sparse"].tensor()._nnz(), 0);
  EXPECT_EQ(batch["sparse"].tensor().sizes(), (std::vector<int64_t>{0, 3}));
}

TEST(RaggedDataset, StatesResumeExactly) {
  const Dataset dataset = sample(12).shuffle(5, {.seed = 3}).batch(4).rebatch(3);
  std::vector<Structure> all;
  for (const Structure& batch : dataset) all.push_back(batch);
  for (size_t done = 0; done < all.size(); ++done) {
    auto first = dataset.iterator();
    // The pass is counted; another dataset of the same seed begins anew.
    for (size_t i = 0; i < done; ++i) first.next();
    auto second = dataset.iterator();
    second.restore(first.state());
    std::vector<Structure> rest;
    while (auto batch = second.next()) rest.push_back(*batch);
    std::vector<Structure> expected;
    while (auto batch = first.next()) expected.push_back(*batch);
    ASSERT_EQ(rest.size(), expected.size());
    for (size_t i = 0; i < rest.size(); ++i) expect_equal(rest[i], expected[i]);
  }
}

TEST(RaggedDataset, FunctionsTakeAndReturnThem) {
  const Dataset lengths = Dataset::from_tensor_slices(ragged_rows(5)).map([](const Tensor& row) {
    return row.numel();
  });
  EXPECT_THAT(ints(lengths), ElementsAre(0, 1, 2, 3, 0));
  const Dataset sums =
      Dataset::from_tensor_slices(ragged_rows(4)).batch(4).map([](const RaggedTensor& ragged) {
        return ragged.to_tensor().sum(1);
      });
  EXPECT_THAT(texts(sums), ElementsAre("[0.0, 1.0, 4.0, 9.0]"));
  const Dataset sparse = Dataset::range(3).map([](int64_t) -> Structure {
    return RaggedTensor::from_row_lengths(at::arange(2), {1, 1}).to_sparse();
  });
  const Structure batch = *sparse.batch(3).iterator().next();
  EXPECT_EQ(batch.tensor().sizes(), (std::vector<int64_t>{3, 2, 1}));
}

TEST(RaggedDataset, RaggedBatchOfTensorsOfDifferentSizes) {
  const Dataset rows =
      Dataset::range(4).map([](int64_t i) { return tuple(Tensor(at::arange(i)), Structure(i)); });
  expect_error<InvalidArgumentError>([&] { rows.batch(4).iterator().next(); }, "one batch");
  const Structure batch = *rows.ragged_batch(4).iterator().next();
  EXPECT_EQ(str(batch), "(<RaggedTensor [[], [0], [0, 1], [0, 1, 2]]>, [0, 1, 2, 3])");
  EXPECT_EQ(str(*rows.apply(experimental::dense_to_ragged_batch(4)).iterator().next()), str(batch));
  const Dataset words = Dataset::from_tensor_slices(
      RaggedTensor::from_row_lengths(StringTensor({"a", "b", "c"}), {1, 2}));
  EXPECT_EQ(str(*words.batch(2).iterator().next()), "<RaggedTensor [[\"a\"], [\"b\", \"c\"]]>");
}

// Element 0 is a tuple of one, element 1 a tuple of two and all others are dicts.
Structure of_other_forms(int64_t i) {
  const Tensor a = at::ones({2});
  const Structure both = dict({{"a", a}, {"b", a}});
  return i == 0 ? tuple(a) : i == 1 ? tuple(a, both) : both;
}

TEST(RaggedDataset, RaggedBatchOfElementsOfOtherForms) {
  const Dataset guessed = Dataset::from_generator(
      [i = 0]() mutable { return std::optional<Structure>(of_other_forms(i++)); });
  auto iterator = guessed.ragged_batch(1).iterator();
  const std::string row = "<RaggedTensor [[1.0, 1.0]]>";
  EXPECT_EQ(str(*iterator.next()), "(" + row + ",)");
  EXPECT_EQ(str(*iterator.next()), "(" + row + ", {'a': " + row + ", 'b': " + row + "})");
  EXPECT_EQ(str(*iterator.next()), "{'a': " + row + ", 'b': " + row + "}");
  expect_error<InvalidArgumentError>([&] { guessed.ragged_batch(2).iterator().next(); },
                                     "their form differs");
  const Dataset known = internal::make_indexed_source("source", 3, of_other_forms);
  expect_error<InvalidArgumentError>([&] { known.ragged_batch(2).iterator().next(); },
                                     "element 1: ragged_batch: an element does not fit");
  EXPECT_EQ(str(*known.take(1).ragged_batch(1).iterator().next()), "([[1.0, 1.0]],)");
}

// 4 rows with one value each, at another place.
Tensor identity_rows() {
  Tensor dense = at::zeros({4, 4});
  dense.fill_diagonal_(1);
  return dense;
}

TEST(SparseDataset, ResultsOfUsersCodeAreMarked) {
  const auto to_sparse = [](const Tensor& x) { return x.to_sparse(); };
  const Dataset rows = Dataset::from_tensor_slices(identity_rows());
  const Dataset generated = Dataset::from_generator([i = 0]() mutable -> std::optional<Tensor> {
    if (i == 4) return std::nullopt;
    return identity_rows()[i++].to_sparse();
  });
  const Dataset scanned = rows.scan(
      0.0, [&](const Tensor& state, const Tensor& x) { return tuple(state, to_sparse(x)); });
  const Dataset indexed = internal::make_indexed_source(
      "source", 4, [](int64_t i) -> Structure { return identity_rows()[i].to_sparse(); });
  for (const Dataset& dataset :
       {rows.map(to_sparse), rows.map(to_sparse, {.num_parallel_calls = 2}),
        rows.map(to_sparse, {.vectorized = true}), generated, scanned, indexed}) {
    EXPECT_EQ(internal::composite_kind(*dataset.iterator().next()), internal::Composite::kSparse);
    EXPECT_EQ(internal::composite_kind(dataset.element_spec()), internal::Composite::kSparse);
    const Dataset batches = dataset.batch(4);
    EXPECT_EQ(internal::composite_kind(batches.element_spec()), internal::Composite::kSparse);
    EXPECT_TRUE(at::equal(batches.iterator().next()->tensor().to_dense(), identity_rows()));
  }
  for (const Structure& piece : split_batches(rows.batch(4).map(to_sparse), 2)) {
    EXPECT_EQ(internal::composite_kind(piece), internal::Composite::kSparse);
    EXPECT_EQ(piece.tensor().sizes(), (std::vector<int64_t>{2, 4}));
    EXPECT_EQ(piece.tensor()._nnz(), 2);
  }
}

TEST(RaggedDataset, VectorizedFunctionsTakeAndReturnThem) {
  const Dataset rows = Dataset::from_tensor_slices(ragged_rows(4));
  const auto doubled = [](const RaggedTensor& block) {
    return block.with_values(block.values() * 2);
  };
  for (const Dataset& dataset :
       {rows.map(doubled, {.vectorized = true}),
        rows.map(doubled, {.vectorized = true, .output_spec = rows.element_spec()})}) {
    EXPECT_EQ(str(dataset.element_spec()), str(rows.element_spec()));
    EXPECT_EQ(str(*dataset.batch(4).iterator().next()),
              "<RaggedTensor [[], [2.0], [4.0, 4.0], [6.0, 6.0, 6.0]]>");
  }
  const Dataset too_few = rows.map([](const RaggedTensor&) { return ragged_rows(1); },
                                   {.vectorized = true, .output_spec = rows.element_spec()});
  expect_error<InvalidArgumentError>([&] { too_few.batch(4).iterator().next(); },
                                     "returned shape [1]");
}

TEST(RaggedDataset, RowsArePadded) {
  const Dataset padded = Dataset::from_tensor_slices(ragged_rows(4)).padded_batch(4);
  EXPECT_TRUE(at::equal(padded.iterator().next()->tensor(), ragged_rows(4).to_tensor()));
  EXPECT_EQ(str(padded.element_spec()), "TensorSpec(shape=(None, None), dtype=float32)");
  expect_error<InvalidArgumentError>([] { sample(4).padded_batch(4).iterator().next(); },
                                     "make it dense");
}

TEST(RaggedDataset, BatchesOfBatchesAreRaggedInTwoDimensions) {
  const Dataset batches = Dataset::from_tensor_slices(ragged_rows(5)).batch(2);
  const Dataset twice = batches.batch(2);
  DatasetIterator iterator = twice.iterator();
  const RaggedTensor first = *iterator.next(), second = *iterator.next();
  EXPECT_EQ(twice.element_spec().first_mismatch(first), std::nullopt);
  EXPECT_EQ(first.ragged_rank(), 2);
  EXPECT_EQ(str(Structure(first.inner())), str(Structure(ragged_rows(4))));
  EXPECT_TRUE(at::equal(first.row_lengths(), at::tensor({2, 2}, int64)));
  EXPECT_TRUE(at::equal(second.row_lengths(), at::tensor({1}, int64)));
  // Rows of such batches are the batches again, in whichever way they are read.
  EXPECT_EQ(texts(twice.unbatch()), texts(batches));
  EXPECT_EQ(texts(twice.rebatch(3)), texts(batches.batch(3)));
  EXPECT_EQ(twice.unbatch().element_spec(), batches.element_spec());
  const Dataset shuffled = Dataset::from_tensor_slices(first).shuffle(2, {.seed = 3}).batch(2);
  const RaggedTensor permuted = *shuffled.iterator().next();
  EXPECT_EQ(permuted.values().sum().item<float>(), first.values().sum().item<float>());
}

TEST(RaggedDataset, WhatCannotBeBatchedIsRefused) {
  const Dataset wide = Dataset::range(2).map([](int64_t i) {
    return Tensor(at::zeros({1, i + 1}));
  });
  expect_error<InvalidArgumentError>([&] { wide.ragged_batch(2).iterator().next(); },
                                     "cannot be in one batch");
}

TEST(RaggedDataset, ElementsAsBytes) {
  const Structure batch = *sample(6).batch(6).iterator().next();
  const std::string bytes = internal::encode_element(batch);
  expect_equal(internal::decode_element(bytes, "test"), batch);
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_THROW(internal::decode_element(bytes.substr(0, size), "test"), DataLossError) << size;
  }
  for (size_t i = 0; i < bytes.size(); ++i) {  // whatever a byte becomes, it is read or refused
    for (const char flip : {1, 16, 127}) {
      std::string damaged = bytes;
      damaged[i] = static_cast<char>(damaged[i] ^ flip);
      try {
        internal::decode_element(damaged, "test");
      } catch (const DataLossError&) {
      }
    }
  }
}

}  // namespace
}  // namespace cohort::data
