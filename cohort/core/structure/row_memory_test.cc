#include "cohort/core/structure/row_memory.h"

#include <gmock/gmock.h>

#include <optional>

namespace cohort::internal {
namespace {

// Elements i, made in the rows of a block as far as `make` takes them.
template <class Make>
std::vector<Tensor> made_in(const RowBlock& block, int64_t count, const Make& make) {
  std::vector<Tensor> rows;
  for (int64_t i = 0; i < count; ++i) {
    const RowOffer offer({block.row(i)});
    rows.push_back(make(i));
  }
  return rows;
}

Tensor filled(int64_t number) { return empty_result({2, 3}, float32).fill_(number); }

TEST(RowMemory, RowsThatWereTakenAreTheBatch) {
  const RowBlock block(4, {2, 3}, float32);
  std::vector<Tensor> rows = made_in(block, 4, filled);
  const void* const first = rows[0].data_ptr();
  const Tensor batch = batch_of_rows(rows, 1);
  ASSERT_TRUE(batch.defined());
  EXPECT_EQ(batch.data_ptr(), first);
  rows.clear();
  for (int64_t i = 0; i < 4; ++i) EXPECT_TRUE(batch[i].eq(i).all().item<bool>());
  const Tensor part = batch_of_rows(made_in(RowBlock(4, {2, 3}, float32), 3, filled), 1);
  EXPECT_EQ(part.sizes(), (std::vector<int64_t>{3, 2, 3}));
}

TEST(RowMemory, WhatDoesNotLieInItsRowIsNoBatch) {
  const RowBlock block(3, {2, 3}, float32);
  std::vector<Tensor> rows = made_in(block, 3, filled);
  std::swap(rows[0], rows[1]);
  EXPECT_FALSE(batch_of_rows(rows, 1).defined());
  std::swap(rows[0], rows[1]);
  rows[2] = rows[2] + 1;
  EXPECT_FALSE(batch_of_rows(rows, 1).defined());
  EXPECT_FALSE(batch_of_rows({}, 1).defined());
}

TEST(RowMemory, ARowThatSomebodyKeepsIsNotGivenAway) {
  const RowBlock block(2, {2, 3}, float32);
  std::vector<Tensor> rows = made_in(block, 2, filled);
  std::optional<Tensor> kept = rows[1];
  EXPECT_FALSE(batch_of_rows(rows, 1).defined());
  kept = rows[1].select(0, 0);  // a view
  EXPECT_FALSE(batch_of_rows(rows, 1).defined());
  kept.reset();
  EXPECT_TRUE(batch_of_rows(rows, 1).defined());
}

TEST(RowMemory, IsOfferedToOneTensorAtATime) {
  const RowBlock block(2, {2, 3}, float32);
  const RowOffer offer({block.row(0)});
  EXPECT_FALSE(is_row(empty_result({3, 2}, float32)));
  EXPECT_FALSE(is_row(empty_result({2, 3}, float64)));
  std::optional<Tensor> first = empty_result({2, 3}, float32);
  EXPECT_TRUE(is_row(*first));
  EXPECT_FALSE(is_row(empty_result({2, 3}, float32)));
  first.reset();
  EXPECT_TRUE(is_row(empty_result({2, 3}, float32)));
}

}  // namespace
}  // namespace cohort::internal
