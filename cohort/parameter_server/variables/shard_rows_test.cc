#include "cohort/parameter_server/variables/shard_rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cohort/core/error.h"

namespace cohort::internal {
namespace {

using distribute::partitioners::FixedShardsPartitioner;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(ShardsOf, TakesAnyFunction) {
  const std::vector<int64_t> shape{10, 3};
  EXPECT_EQ(shards_of(nullptr, "v", shape, float32), 1);
  EXPECT_EQ(shards_of(FixedShardsPartitioner(4), "v", shape, float32), 4);
  EXPECT_EQ(shards_of(FixedShardsPartitioner(4), "v", {}, float32), 1);  // a scalar
  const auto by_dtype = [](const std::vector<int64_t>& of, DType dtype) {
    return std::vector<int64_t>{dtype == float32 ? of[0] : 1, 1};
  };
  EXPECT_EQ(shards_of(by_dtype, "v", shape, float32), 10);
  EXPECT_EQ(shards_of(by_dtype, "v", shape, int64), 1);
  const auto many = [](const std::vector<int64_t>&, DType) { return std::vector<int64_t>{99, 1}; };
  EXPECT_EQ(shards_of(many, "v", shape, float32), 10);
}

TEST(ShardsOf, RefusesAPartitionThatIsNotAlongRows) {
  using Partition = std::vector<int64_t>;
  for (const Partition& partition : {Partition{}, Partition{0, 1}, Partition{2}, Partition{2, 2},
                                     Partition{1, 2}, Partition{-1, 1}, Partition{0, 1, 1}}) {
    const auto give = [&](const std::vector<int64_t>&, DType) { return partition; };
    try {
      shards_of(give, "embedding/table", {10, 3}, float32);
      ADD_FAILURE() << "accepted";
    } catch (const InvalidArgumentError& error) {
      EXPECT_THAT(error.what(), HasSubstr("variable_partitioner"));
      EXPECT_THAT(error.what(), HasSubstr("embedding/table"));
    }
  }
}

TEST(SplitRows, GivesTheFirstShardsTheRest) {
  const auto sizes = [](int64_t rows, int64_t shards) {
    std::vector<int64_t> all;
    for (const RowRange& range : split_rows(rows, shards)) all.push_back(range.size());
    return all;
  };
  EXPECT_THAT(sizes(13, 5), ElementsAre(3, 3, 3, 2, 2));
  EXPECT_THAT(sizes(10, 4), ElementsAre(3, 3, 2, 2));
  EXPECT_THAT(sizes(32, 3), ElementsAre(11, 11, 10));
  EXPECT_THAT(split_rows(5, 2), ElementsAre(RowRange{0, 3}, RowRange{3, 5}));
}

TEST(SplitRows, FindsTheShardOfEveryRow) {
  for (const int64_t rows : {1, 2, 7, 13, 32}) {
    for (int64_t shards = 1; shards <= rows; ++shards) {
      const auto ranges = split_rows(rows, shards);
      for (int64_t row = 0; row < rows; ++row) {
        const RowRange& range = ranges[static_cast<size_t>(shard_of_row(row, rows, shards))];
        EXPECT_LE(range.begin, row);
        EXPECT_LT(row, range.end);
      }
    }
  }
}

}  // namespace
}  // namespace cohort::internal
