// The rows of a variable that each of its shards has.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "cohort/core/structure/tensor.h"
#include "cohort/parameter_server/variables/partitioner.h"

namespace cohort::internal {

// The number of shards along axis 0 that `partitioner` gives a variable; 1 for a scalar and where
// there is no partitioner. Never more than there are rows.
// Errors: InvalidArgument (a result that does not have one positive number per dimension, or
// divides another axis; names variable_partitioner and the variable).
int64_t shards_of(const distribute::partitioners::Partitioner& partitioner,
                  std::string_view variable, const std::vector<int64_t>& shape, DType dtype);

// The rows [begin, end) of one shard.
struct RowRange {
  int64_t begin = 0;
  int64_t end = 0;
  int64_t size() const { return end - begin; }
  bool operator==(const RowRange&) const = default;
};
// The "div" split: ranges in order, of which the first `rows % shards` have a row more than the
// others.
std::vector<RowRange> split_rows(int64_t rows, int64_t shards);
// The shard of split_rows that has this row. O(1).
int64_t shard_of_row(int64_t row, int64_t rows, int64_t shards);

// The ids of the rows of one shard, counted from its first row.
struct ShardIds {
  size_t shard = 0;
  int64_t begin = 0;  // where they begin in what was split
  Tensor ids;
};
// Splits ids by shard, without the shards that have none. Ids of the first shard share the given
// memory. Shapes: ids [n] of int64, ascending, within `rows` of split_rows.
std::vector<ShardIds> split_ids(const Tensor& ids, int64_t rows, int64_t shards);

}  // namespace cohort::internal
