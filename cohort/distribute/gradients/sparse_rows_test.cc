#include "cohort/distribute/gradients/sparse_rows.h"

#include <ATen/ops/_sparse_coo_tensor_unsafe.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/sparse_coo_tensor.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "cohort/core/error.h"
#include "cohort/ops/random.h"

namespace cohort::internal {
namespace {

constexpr int64_t kRowSize = 3;

Tensor sparse(const Tensor& ids, const Tensor& values, int64_t num_rows) {
  return at::sparse_coo_tensor(ids.reshape({1, -1}), values, {num_rows, values.size(1)});
}

Tensor random_sparse(int64_t num_rows, int64_t count) {
  const Tensor ids = (random::uniform({count}) * static_cast<double>(num_rows)).to(at::kLong);
  return sparse(ids, random::normal({count, kRowSize}), num_rows);
}

// Row after row, in the order in which they lie.
Tensor as_dense(const Tensor& gradient) {
  return at::zeros(gradient.sizes()).index_add(0, gradient._indices()[0], gradient._values());
}

// The sum by way of SparseRowSum, from row `begin` to row `end`.
Tensor add_up(const std::vector<Tensor>& gradients, int64_t begin, int64_t end) {
  std::vector<SparseRows> rows;
  for (const Tensor& gradient : gradients) rows.emplace_back(gradient);
  SparseRowSum sum;
  for (const SparseRows& one : rows) sum.add(one);
  Tensor result = at::zeros(gradients[0].sizes());
  char* const tables[] = {static_cast<char*>(result.data_ptr())};
  std::vector<float> at_place(kRowSize), scratch(kRowSize);
  const auto bytes = [](std::vector<float>& row) { return reinterpret_cast<char*>(row.data()); };
  sum.skip_to(begin);
  for (int64_t id = sum.next_id(end); id != end; id = sum.next_id(end)) {
    sum.prefetch(tables, kRowSize * sizeof(float));
    const char* found = sum.take(id, kRowSize, float32, bytes(at_place), bytes(scratch));
    std::memcpy(result[id].data_ptr(), found, kRowSize * sizeof(float));
  }
  return result;
}

TEST(SparseRows, AreSortedByIdAndStayInOrderWithinOne) {
  // Few are sorted by comparing, many digit by digit; ids of one, of two and of three digits.
  for (const int64_t count : {0, 1, 100, 5000}) {
    for (const int64_t num_rows : {7, 100'000, 50'000'000}) {
      const Tensor gradient = random_sparse(num_rows, count);
      const Tensor ids = gradient._indices(), values = gradient._values();
      const SparseRows sorted(gradient);
      std::vector<std::pair<int64_t, int64_t>> expected, found;
      for (int64_t i = 0; i < count; ++i) {
        expected.emplace_back(ids.data_ptr<int64_t>()[i], i * kRowSize);
      }
      std::stable_sort(expected.begin(), expected.end(),
                       [](const auto& a, const auto& b) { return a.first < b.first; });
      for (const SparseRows::Row& row : sorted.rows()) {
        found.emplace_back(row.id,
                           reinterpret_cast<const float*>(row.values) - values.data_ptr<float>());
      }
      EXPECT_EQ(found, expected) << count << " of " << num_rows;
    }
  }
}

TEST(SparseRows, AnyLayoutOfTheValuesWillDo) {
  const Tensor ids = at::tensor({4, 1, 4}, at::kLong);
  const Tensor columns = at::arange(9, at::kFloat).reshape({3, 3}).t();  // strided
  const Tensor repeated = at::ones({1, 3}).expand({3, 3});
  for (const Tensor& values : {columns, repeated}) {
    EXPECT_TRUE(at::equal(add_up({sparse(ids, values, 6)}, 0, 6),
                          as_dense(sparse(ids, values.contiguous(), 6))));
  }
}

TEST(SparseRows, AreInSparseGradientsOfRowsThatAreNotTooLong) {
  EXPECT_TRUE(SparseRows::are_in(random_sparse(5, 2), kRowSize));
  EXPECT_FALSE(SparseRows::are_in(random_sparse(5, 2), kRowSize - 1));
  EXPECT_FALSE(SparseRows::are_in(at::ones({5, 3}), kRowSize));
  EXPECT_FALSE(SparseRows::are_in(at::ones({5, 3}).to_sparse(), kRowSize));  // of elements
  EXPECT_FALSE(SparseRows::are_in(at::ones({5}).to_sparse(), kRowSize));
}

TEST(SparseRows, RowsOutsideAreRefused) {
  for (const int64_t id : {-1, 6}) {
    const Tensor gradient = at::_sparse_coo_tensor_unsafe(
        at::tensor({int64_t{2}, id}, at::kLong).reshape({1, 2}), at::ones({2, 3}), {6, 3});
    EXPECT_THROW(SparseRows{gradient}, InvalidArgumentError) << id;
  }
}

TEST(SparseRowSum, AddsEachGradientUpFirst) {
  for (const size_t num_gradients : {1, 2, 3}) {
    std::vector<Tensor> gradients;
    Tensor expected;
    for (size_t i = 0; i < num_gradients; ++i) {
      gradients.push_back(random_sparse(50, 40 + 200 * static_cast<int64_t>(i)));
      expected = i == 0 ? as_dense(gradients[i]) : expected + as_dense(gradients[i]);
    }
    EXPECT_TRUE(at::equal(add_up(gradients, 0, 50), expected)) << num_gradients;

    const Tensor part = add_up(gradients, 20, 31);
    EXPECT_TRUE(at::equal(part.slice(0, 20, 31), expected.slice(0, 20, 31)));
    EXPECT_EQ(part.slice(0, 0, 20).count_nonzero().item<int64_t>(), 0);
    EXPECT_EQ(part.slice(0, 31).count_nonzero().item<int64_t>(), 0);
  }
}

TEST(SparseRowSum, AGradientWithoutRowsAddsNothing) {
  const Tensor gradient = random_sparse(5, 20);
  EXPECT_TRUE(at::equal(add_up({random_sparse(5, 0), gradient}, 0, 5), as_dense(gradient)));
}

TEST(MergedRows, HoldEachIdOnceAndAreReadAgainAsRows) {
  const Tensor first = sparse(at::tensor({7, 2, 7}, int64), at::ones({3, kRowSize}), 9);
  const Tensor second = sparse(at::tensor({2, 5}, int64), at::ones({2, kRowSize}) * 10, 9);
  const SparseRows rows[] = {SparseRows(first), SparseRows(second)};
  SparseRowSum sum;
  for (const SparseRows& one : rows) sum.add(one);
  MergedRows merged;
  merged.take_all(sum, kRowSize, float32);
  EXPECT_EQ(merged.ids, (std::vector<int64_t>{2, 5, 7}));
  SparseRows again = rows[0];
  again.assign(merged.ids, merged.values.data(), kRowSize * sizeof(float));
  ASSERT_EQ(again.rows().size(), 3u);
  const float expected[] = {11, 10, 2};
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(again.rows()[i].id, merged.ids[i]);
    float last = 0;
    std::memcpy(&last, again.rows()[i].values + (kRowSize - 1) * sizeof(float), sizeof last);
    EXPECT_EQ(last, expected[i]);
  }
}

}  // namespace
}  // namespace cohort::internal
