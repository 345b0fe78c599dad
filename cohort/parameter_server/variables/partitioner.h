// Into how many shards a variable is divided under ParameterServerStrategy.
//
//   MinSizePartitioner partitioner({.min_shard_bytes = 256 << 10, .max_shards = 2});
//   partitioner({8, 16384}, float32);    // {2, 1}: two shards of four rows each
//
// Any function of a shape and a dtype is a partitioner, too. Variables are divided along axis 0
// alone, so that all other numbers must be 1.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "cohort/core/export.h"
#include "cohort/core/structure/tensor.h"

namespace cohort::distribute::partitioners {

// Shape: one number per dimension -> one number of shards per dimension.
using Partitioner =
    std::function<std::vector<int64_t>(const std::vector<int64_t>& shape, DType dtype)>;

// The same number of shards for every variable, or one per row where there are fewer rows.
class COHORT_API FixedShardsPartitioner {
 public:
  // Errors: InvalidArgument (less than 1).
  explicit FixedShardsPartitioner(int64_t num_shards);
  // axis: the one that is divided.
  // Errors: InvalidArgument (no such axis).
  std::vector<int64_t> operator()(const std::vector<int64_t>& shape, DType dtype,
                                  int64_t axis = 0) const;

 private:
  int64_t num_shards_;
};

struct MinSizePartitionerOptions {
  int64_t min_shard_bytes = 256 << 10;
  int64_t max_shards = 1;
};
// Makes as many shards as there can be of min_shard_bytes or more, up to max_shards.
class COHORT_API MinSizePartitioner {
 public:
  // Errors: InvalidArgument (a number below 1).
  explicit MinSizePartitioner(const MinSizePartitionerOptions& options = {});
  // Errors: InvalidArgument (no such axis).
  std::vector<int64_t> operator()(const std::vector<int64_t>& shape, DType dtype,
                                  int64_t axis = 0) const;

 private:
  MinSizePartitionerOptions options_;
};

struct MaxSizePartitionerOptions {
  int64_t max_shard_bytes = 0;  // at least 1
  int64_t max_shards = 0;       // 0: any number
};
// Makes as few shards as there can be of max_shard_bytes or less, but none smaller than a row.
class COHORT_API MaxSizePartitioner {
 public:
  // Errors: InvalidArgument (a number below 1).
  explicit MaxSizePartitioner(const MaxSizePartitionerOptions& options);
  // Errors: InvalidArgument (no such axis).
  std::vector<int64_t> operator()(const std::vector<int64_t>& shape, DType dtype,
                                  int64_t axis = 0) const;

 private:
  MaxSizePartitionerOptions options_;
};

}  // namespace cohort::distribute::partitioners
