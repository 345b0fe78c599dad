#include "cohort/core/structure/sparse_tensor.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>

#include "cohort/core/structure/ragged_tensor.h"
#include "cohort/core/structure/spec.h"
#include "cohort/core/structure/structure_call.h"
#include "cohort/core/testing_errors.h"

namespace cohort {
namespace {

using internal::expect_error;
using internal::str;

SparseTensor sparse_sample() {
  return SparseTensor(at::tensor({0, 2, 1, 0}, int64).view({2, 2}), at::tensor({1.5, 0.0}), {3, 4});
}

TEST(SparseTensor, HasIndicesValuesAndShape) {
  const SparseTensor sparse = sparse_sample();
  EXPECT_EQ(str(sparse),
            "SparseTensor(indices=[[0, 2], [1, 0]], values=[1.5, 0.0], dense_shape=[3,4])");
  Tensor dense = at::zeros({3, 4}, sparse.values().options());
  dense[0][2] = 1.5;
  EXPECT_TRUE(at::equal(sparse.to_dense(), dense));
  // The value 0 is one, and not the default.
  const Tensor filled = sparse.to_dense(-1);
  EXPECT_EQ(filled[1][0].item<double>(), 0);
  EXPECT_EQ(filled[2][3].item<double>(), -1);
  EXPECT_EQ(SparseTensor::from_dense(dense).values().size(0), 1);
  EXPECT_TRUE(at::equal(SparseTensor::from_dense(dense).to_dense(), dense));
  const SparseTensor none(at::zeros({0, 1}, int64), at::zeros({0}), {2});
  EXPECT_TRUE(at::equal(none.to_dense(7), at::ones({2}) * 7));
}

TEST(SparseTensor, IsAStructure) {
  const Structure element = dict({{"words", sparse_sample()}});
  EXPECT_EQ(str(element), "{'words': <sparse float64 [3,4], 2 values>}");
  const SparseTensor back = element["words"];
  EXPECT_TRUE(at::equal(back.indices(), sparse_sample().indices()));
  const auto count = internal::structure_function(
      [](const SparseTensor& sparse) { return sparse.values().size(0); });
  EXPECT_EQ(count(sparse_sample()).tensor().item<int64_t>(), 2);
  EXPECT_EQ(count(Structure(sparse_sample().coo())).tensor().item<int64_t>(), 2)
      << "without its mark";
}

TEST(SparseTensor, WhatDoesNotFitIsRefused) {
  const auto refused = [](const Tensor& indices, const Tensor& values, std::vector<int64_t> shape,
                          const char* text) {
    expect_error<InvalidArgumentError>([&] { SparseTensor(indices, values, shape); }, text);
  };
  const Tensor index = at::tensor({1, 4}, int64).view({1, 2});
  refused(index, at::ones({1}), {2, 4}, "index 0 is 4 in dimension 1, outside of the dense_shape");
  refused(index, at::ones({2}), {2, 5}, "values float32 [2]");
  refused(index, at::ones({1}), {2}, "must be int64 [n, 1]");
  refused(index.to(float32), at::ones({1}), {2, 5}, "must be int64");
  refused(index, at::ones({1}), {2, -5}, "a size below 0");
  const SparseTensor twice(at::zeros({2, 1}, int64), at::ones({2}), {3});
  EXPECT_EQ(twice.to_dense()[0].item<double>(), 2);
  expect_error<InvalidArgumentError>([&] { twice.to_dense(1); }, "only 1 differ");
  expect_error<InvalidArgumentError>([] { const SparseTensor wrong(tuple()); },
                                     "expected a SparseTensor");
  expect_error<InvalidArgumentError>([] { const SparseTensor wrong(at::ones({1})); }, "COO layout");
}

TEST(SparseStructure, IsItsTensor) {
  const Tensor coo = RaggedTensor::from_row_lengths(at::arange(5), {3, 0, 2}).to_sparse();
  const Structure sparse = sparse_structure(coo);
  EXPECT_EQ(sparse.tensor()._nnz(), 5);
  EXPECT_EQ(str(sparse), "<sparse int64 [3,3], 5 values>");
  EXPECT_EQ(str(StructureSpec::of(sparse)),
            "SparseTensorSpec(TensorSpec(shape=(3, 3), dtype=int64))");
  const Structure unmarked = coo;
  EXPECT_EQ(StructureSpec::of(unmarked), StructureSpec::of(sparse));
  EXPECT_EQ(StructureSpec::of(unmarked).first_mismatch(unmarked), std::nullopt);
  EXPECT_EQ(StructureSpec::of(unmarked).first_mismatch(sparse), std::nullopt);
  const auto sum =
      internal::structure_function([](const Tensor& coo) { return Tensor(coo.to_dense().sum()); });
  EXPECT_EQ(sum(sparse).tensor().item<int64_t>(), 10);
  expect_error<InvalidArgumentError>([] { sparse_structure(at::ones({1})); }, "COO layout");
}

}  // namespace
}  // namespace cohort
