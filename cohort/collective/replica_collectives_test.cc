#include "cohort/collective/replica_collectives.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cohort/collective/testing_members.h"

namespace cohort::collective {
namespace {

using ::testing::HasSubstr;

TEST(AllReduceSum, GivesEveryMemberASumOfItsOwn) {
  for (const int members : {1, 2, 3, 4}) {
    for (const int64_t size : {0, 1, 7, 1000, 5003}) {
      SyncGroup group(members, kNoSpin);
      std::vector<Tensor> results(members);
      run_all(group.threads(), [&](int rank) {
        results[rank] = all_reduce_sum(group, rank, at::arange(size, at::kFloat) * (rank + 1));
      });
      const Tensor expected = at::arange(size, at::kFloat) * (members * (members + 1) / 2);
      for (const Tensor& result : results) EXPECT_TRUE(at::equal(result, expected));
      if (members > 1 && size > 0) {
        EXPECT_NE(results[0].data_ptr(), results[1].data_ptr());
      }
    }
  }
}

TEST(AllReduceSum, TakesViewsAndScalarsAndLeavesItsInputAlone) {
  SyncGroup group(2, kNoSpin);
  const Tensor base = at::arange(6, at::kDouble).reshape({2, 3});
  run_all(group.threads(), [&](int rank) {
    EXPECT_TRUE(at::equal(all_reduce_sum(group, rank, base.t()), 2 * base.t()));
    EXPECT_EQ(all_reduce_sum(group, rank, at::full({}, rank + 1.0)).item<double>(), 3.0);
  });
  EXPECT_TRUE(at::equal(base, at::arange(6, at::kDouble).reshape({2, 3})));
}

TEST(AllReduceSum, DifferentShapesNameBothReplicas) {
  SyncGroup group(3, kNoSpin);
  const auto errors = run_members(group.threads(), {}, [&](int rank) {
    all_reduce_sum(group, rank, at::ones({rank == 2 ? 5 : 4}));
  });
  for (const auto& error : errors) {
    EXPECT_THAT(message_of<InvalidArgumentError>(error),
                HasSubstr("replica 0 has float32 [4], replica 2 has float32 [5]"));
  }
}

TEST(AllReduceSum, RefusesADtypeWithoutASum) {
  SyncGroup group(2, kNoSpin);
  const auto errors = run_members(group.threads(), {}, [&](int rank) {
    all_reduce_sum(group, rank, at::zeros({2}, at::kBool));
  });
  for (const auto& error : errors) {
    EXPECT_THAT(message_of<InvalidArgumentError>(error), HasSubstr("bool"));
  }
}

std::string sparse_error_of(const std::function<void(SyncGroup&, int)>& member) {
  SyncGroup group(2, kNoSpin);
  const auto errors = run_members(group.threads(), {}, [&](int rank) { member(group, rank); });
  EXPECT_EQ(message_of<Error>(errors[0]), message_of<Error>(errors[1]));
  return message_of<Error>(errors[0]);
}

TEST(AllReduceSum, SparseValuesThatDifferNameBothReplicas) {
  const Tensor grid = at::ones({4, 3});
  EXPECT_THAT(sparse_error_of([&](SyncGroup& group, int rank) {
                all_reduce_sum(group, rank, grid.to_sparse(rank == 0 ? 1 : 2));
              }),
              HasSubstr("replica 0 has float32 [4,3] with sparse_dim 1, replica 1 has float32 "
                        "[4,3] with sparse_dim 2"));
  EXPECT_THAT(sparse_error_of([&](SyncGroup& group, int) {
                sum_sparse(group, {grid.to_sparse(1), grid}, "reduce SUM");
              }),
              HasSubstr("replica 1 has a dense float32 [4,3]"));
  EXPECT_THAT(sparse_error_of([&](SyncGroup& group, int rank) {
                all_reduce_sum(group, rank, grid.to_sparse(1), rank == 0 ? "one" : "another");
              }),
              HasSubstr("replica 0 in one of a sparse value, replica 1 in another of a sparse"));
}

TEST(AllGather, JoinsAlongTheAxisInTheOrderOfRanks) {
  SyncGroup group(2, kNoSpin);
  run_all(group.threads(), [&](int rank) {
    const Tensor rows = all_gather(group, rank, at::full({rank + 1, 2}, rank), 0);
    EXPECT_EQ(rows.sizes(), (at::IntArrayRef{3, 2}));
    EXPECT_EQ(rows[0][0].item<int64_t>(), 0);
    EXPECT_EQ(rows[2][1].item<int64_t>(), 1);
    EXPECT_EQ(all_gather(group, rank, at::full({2, rank + 1}, rank), 1).sizes(),
              (at::IntArrayRef{2, 3}));
  });
}

TEST(AllGather, RefusesRankZeroAxesOutsideAndOtherShapes) {
  EXPECT_THROW(check_can_concat({at::ones({})}, 0), InvalidArgumentError);
  EXPECT_THROW(check_can_concat({at::ones({2})}, 1), InvalidArgumentError);
  EXPECT_THROW(check_can_concat({at::ones({2})}, -1), InvalidArgumentError);
  EXPECT_THROW(check_can_concat({at::ones({2, 3}), at::ones({2, 4})}, 0), InvalidArgumentError);
  EXPECT_THROW(check_can_concat({at::ones({2}), at::ones({2}, at::kDouble)}, 0),
               InvalidArgumentError);
  EXPECT_NO_THROW(check_can_concat({at::ones({2, 3}), at::ones({2, 4})}, 1));
}

}  // namespace
}  // namespace cohort::collective
