#include "cohort/core/structure/ragged_tensor.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>

#include "cohort/core/structure/spec.h"
#include "cohort/core/structure/structure_call.h"
#include "cohort/core/testing_errors.h"

namespace cohort {
namespace {

using internal::expect_error;
using internal::str;

RaggedTensor sample() { return RaggedTensor::from_row_lengths(at::arange(5), {3, 0, 2}); }

TEST(RaggedTensor, HasValuesAndRows) {
  const RaggedTensor ragged = sample();
  EXPECT_EQ(ragged.nrows(), 3);
  EXPECT_TRUE(at::equal(ragged.row_splits(), at::tensor({0, 3, 3, 5}, int64)));
  EXPECT_TRUE(at::equal(ragged.row_lengths(), at::tensor({3, 0, 2}, int64)));
  EXPECT_TRUE(at::equal(ragged[2].tensor(), at::tensor({3, 4}, int64)));
  EXPECT_EQ(ragged[1].tensor().numel(), 0);
  EXPECT_THROW(ragged[3], OutOfRangeError);
  EXPECT_EQ(str(ragged), "<RaggedTensor [[0, 1, 2], [], [3, 4]]>");
}

TEST(RaggedTensor, OfRowsOrStrings) {
  const RaggedTensor rows = RaggedTensor::from_rows({at::ones({2, 3}), at::ones({1, 3})});
  EXPECT_EQ(rows.values().sizes(), (std::vector<int64_t>{3, 3}));
  const RaggedTensor words = RaggedTensor::from_row_lengths(StringTensor({"a", "b", "c"}), {1, 2});
  EXPECT_EQ(str(words), "<RaggedTensor [[\"a\"], [\"b\", \"c\"]]>");
  EXPECT_EQ(words.string_values()[2], "c");
}

TEST(RaggedTensor, BecomesDenseAndSparse) {
  const Tensor dense = sample().to_tensor(-1);
  EXPECT_TRUE(at::equal(dense, at::tensor({0, 1, 2, -1, -1, -1, 3, 4, -1}, int64).reshape({3, 3})));
  const Tensor sparse = sample().to_sparse();
  EXPECT_EQ(sparse._nnz(), 5);
  EXPECT_TRUE(at::equal(sparse.to_dense(), sample().to_tensor()));
  const RaggedTensor rows = RaggedTensor::from_rows({at::ones({2, 3}), at::ones({1, 3})});
  EXPECT_EQ(rows.to_tensor().sizes(), (std::vector<int64_t>{2, 2, 3}));
  EXPECT_EQ(rows.to_tensor().sum().item<double>(), 9);
  const RaggedTensor none = RaggedTensor::from_row_splits(at::zeros({0}), at::zeros({1}, int64));
  EXPECT_EQ(none.to_tensor().sizes(), (std::vector<int64_t>{0, 0}));
}

TEST(RaggedTensor, WrongSplitsAreRefused) {
  const Tensor values = at::arange(3);
  const auto refused = [&](const Tensor& splits, const std::string& text) {
    expect_error<InvalidArgumentError>([&] { RaggedTensor::from_row_splits(values, splits); },
                                       text);
  };
  refused(at::tensor({0, 2}, int64), "row_splits end with 2, but there are 3 values");
  refused(at::tensor({1, 3}, int64), "begin with 1");
  refused(at::tensor({0, 3, 2, 3}, int64), "row 1 ends at 2");
  refused(at::zeros({0}, int64), "must be int64 [rows + 1]");
  refused(at::tensor({0.0, 3.0}), "must be int64");
  refused(Tensor(), "undefined tensor");
  expect_error<InvalidArgumentError>(
      [&] {
        RaggedTensor::from_row_lengths(values, {4, -1});
      },
      "row_splits must not fall");
  expect_error<InvalidArgumentError>(
      [] {
        RaggedTensor::from_rows({at::ones({1, 2}), at::ones({1, 3})});
      },
      "row 1 is");
  expect_error<InvalidArgumentError>([] { sample().with_values(at::ones({4})); }, "needs 5 values");
}

TEST(RaggedTensor, IsAStructure) {
  const Structure element = dict({{"ids", sample()}, {"x", Tensor(at::ones({3}))}});
  EXPECT_EQ(str(element), "{'ids': <RaggedTensor [[0, 1, 2], [], [3, 4]]>, 'x': [1.0, 1.0, 1.0]}");
  const RaggedTensor back = element["ids"];
  EXPECT_TRUE(back.values().is_same(element["ids"][0].tensor()));
  expect_error<InvalidArgumentError>([&] { const RaggedTensor wrong(element["x"]); },
                                     "expected a RaggedTensor");
  EXPECT_EQ(str(StructureSpec::of(element["ids"])),
            "RaggedTensorSpec(values=TensorSpec(shape=(None,), dtype=int64), "
            "row_splits=TensorSpec(shape=(4,), dtype=int64))");
}

TEST(RaggedTensor, ABrokenStructureIsRefused) {
  const auto refused = [](const Structure& values, const Tensor& splits, const std::string& text) {
    const Structure broken = dict({{"$values", values}, {"$row_splits", splits}});
    expect_error<InvalidArgumentError>([&] { const RaggedTensor wrong(broken); }, text);
    EXPECT_THAT(str(broken), testing::HasSubstr("$row_splits")) << "messages can print it";
  };
  refused(Tensor(at::arange(3)), at::tensor({0, 2, 4}, int64), "end with 4, but there are 3");
  refused(Tensor(at::arange(3)), at::tensor({0.0, 3.0}), "must be int64");
  refused(Tensor(at::ones({})), at::tensor({0, 1}, int64), "are a scalar");
  refused(tuple(), at::tensor({0, 1}, int64), "must be tensors");
  const Tensor every_second = at::tensor({0, 9, 2, 9, 3}, int64).slice(0, 0, 5, 2);
  const RaggedTensor whole =
      dict({{"$values", Tensor(at::arange(3))}, {"$row_splits", every_second}});
  EXPECT_EQ(str(whole), "<RaggedTensor [[0, 1], [2]]>");
}

TEST(RaggedTensor, IsAParameterAndAResult) {
  const auto doubled = internal::structure_function(
      [](const RaggedTensor& ids, const Tensor&) { return ids.with_values(ids.values() * 2); });
  EXPECT_EQ(str(doubled(tuple(sample(), Tensor(at::ones({1}))))),
            "<RaggedTensor [[0, 2, 4], [], [6, 8]]>");
}

// [[[1, 2], []], [], [[3], [4, 5, 6]]]
RaggedTensor nested() {
  return RaggedTensor::from_nested_row_splits(
      at::arange(1, 7), {at::tensor({0, 2, 2, 4}, int64), at::tensor({0, 2, 2, 3, 6}, int64)});
}

TEST(NestedRaggedTensor, HasRaggedRows) {
  const RaggedTensor ragged = nested();
  EXPECT_EQ(ragged.ragged_rank(), 2);
  EXPECT_EQ(str(Structure(ragged)), "<RaggedTensor [[[1, 2], []], [], [[3], [4, 5, 6]]]>");
  EXPECT_EQ(str(Structure(ragged.inner())), "<RaggedTensor [[1, 2], [], [3], [4, 5, 6]]>");
  EXPECT_EQ(str(ragged.row(2)), "<RaggedTensor [[3], [4, 5, 6]]>");
  EXPECT_EQ(str(Structure(ragged.slice(1, 3))), "<RaggedTensor [[], [[3], [4, 5, 6]]]>");
  EXPECT_EQ(str(ragged.inner().row(3)), "[4, 5, 6]");
  EXPECT_EQ(str(Structure(RaggedTensor::from_row_splits(ragged.inner(), ragged.row_splits()))),
            str(Structure(ragged)));
  const RaggedTensor back = Structure(ragged);
  EXPECT_EQ(back.ragged_rank(), 2);
  EXPECT_EQ(str(StructureSpec::of(ragged)),
            "RaggedTensorSpec(values=TensorSpec(shape=(None,), dtype=int64), "
            "row_splits=TensorSpec(shape=(4,), dtype=int64), "
            "row_splits_1=TensorSpec(shape=(None,), dtype=int64))");
}

TEST(NestedRaggedTensor, BecomesDenseAndSparse) {
  const Tensor dense = nested().to_tensor(-1);
  EXPECT_EQ(dense.sizes(), (std::vector<int64_t>{3, 2, 3}));
  EXPECT_TRUE(at::equal(dense.select(0, 2), at::tensor({3, -1, -1, 4, 5, 6}, int64).view({2, 3})));
  EXPECT_TRUE(at::equal(nested().to_sparse().to_dense(), nested().to_tensor()));
}

TEST(NestedRaggedTensor, WhatDoesNotFitIsRefused) {
  expect_error<InvalidArgumentError>(
      [] {
        RaggedTensor::from_nested_row_splits(
            at::arange(3), {at::tensor({0, 3}, int64), at::tensor({0, 1, 3}, int64)});
      },
      "row_splits end with 3, but there are 2 values");
  expect_error<InvalidArgumentError>(
      [] { RaggedTensor::from_nested_row_splits(at::arange(3), {}); }, "there are no row_splits");
  expect_error<InvalidArgumentError>([] { nested()[0]; }, "one ragged dimension, but got one of 2");
  expect_error<InvalidArgumentError>([] { sample().inner(); }, "are not ragged");
  expect_error<OutOfRangeError>([] { nested().slice(1, 4); }, "rows [1, 4)");
  const Structure strange = dict({{"$values", Tensor(at::arange(3))},
                                  {"$row_splits", Tensor(at::tensor({0, 3}, int64))},
                                  {"mine", Tensor(at::tensor({0, 3}, int64))}});
  expect_error<InvalidArgumentError>([&] { const RaggedTensor wrong(strange); }, "a 'mine' in it");
}

}  // namespace
}  // namespace cohort
