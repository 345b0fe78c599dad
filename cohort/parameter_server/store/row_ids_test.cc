#include "cohort/parameter_server/store/row_ids.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "cohort/parameter_server/variables/row_cache.h"

namespace cohort::internal {
namespace {

Tensor ids_of(std::vector<int64_t> ids) { return at::tensor(ids, int64); }

TEST(DistinctRows, AreSortedAndKnowWhereEachIdWent) {
  // Few and many ids, small and large ones: both ways of sorting.
  for (const int64_t count : {0, 1, 7, 5000}) {
    for (const int64_t largest : {int64_t{3}, int64_t{4000}, int64_t{1} << 40}) {
      const Tensor ids = at::randint(largest, {count}, int64);
      const DistinctRows distinct = distinct_rows(ids);
      EXPECT_TRUE(at::equal(distinct.ids.index_select(0, distinct.positions), ids));
      const int64_t* given = ids.data_ptr<int64_t>();
      const std::set<int64_t> expected(given, given + count);
      const int64_t* found = distinct.ids.data_ptr<int64_t>();
      EXPECT_TRUE(
          std::equal(expected.begin(), expected.end(), found, found + distinct.ids.numel()));
    }
  }
}

TEST(DistinctRows, TakesSortedIdsAsTheyAre) {
  const Tensor ids = ids_of({1, 4, 9});
  EXPECT_TRUE(distinct_rows(ids).ids.is_same(ids));
}

TEST(Rows, AreGatheredAndAddedUp) {
  const Tensor table = at::arange(8, float32).reshape({4, 2});
  const Tensor rows = gather_rows(table, ids_of({3, 0, 3}));
  EXPECT_TRUE(at::equal(rows, table.index_select(0, ids_of({3, 0, 3}))));
  EXPECT_TRUE(at::equal(sum_rows(rows, ids_of({1, 0, 1}), 2),
                        at::tensor({0.f, 1.f, 12.f, 14.f}).reshape({2, 2})));
  EXPECT_TRUE(at::equal(sum_rows(rows.to(int64), ids_of({1, 0, 1}), 2),
                        at::tensor({0, 1, 12, 14}, int64).reshape({2, 2})));
  EXPECT_EQ(gather_rows(table, ids_of({})).size(0), 0);
}

TEST(RowCache, KeepsTheFirstOfEachRow) {
  RowCache cache;
  EXPECT_TRUE(at::equal(cache.missing(ids_of({2, 5})), ids_of({2, 5})));
  cache.add(ids_of({2, 5}), at::tensor({2.f, 5.f}).reshape({2, 1}));
  EXPECT_TRUE(at::equal(cache.missing(ids_of({1, 2, 9})), ids_of({1, 9})));
  cache.add(ids_of({1, 2, 9}), at::tensor({1.f, -2.f, 9.f}).reshape({3, 1}));
  EXPECT_TRUE(at::equal(cache.ids(), ids_of({1, 2, 5, 9})));
  EXPECT_TRUE(at::equal(cache.rows().flatten(), at::tensor({1.f, 2.f, 5.f, 9.f})));
  EXPECT_EQ(cache.missing(ids_of({1, 5})).numel(), 0);
  cache.clear();
  EXPECT_TRUE(cache.empty());
}

}  // namespace
}  // namespace cohort::internal
