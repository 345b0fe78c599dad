#include "cohort/parameter_server/variables/partitioner.h"

#include <c10/core/ScalarType.h>

#include <algorithm>
#include <limits>

#include "cohort/core/error.h"

namespace cohort::distribute::partitioners {
namespace {

using internal::str;

void check_at_least_one(const char* name, int64_t value) {
  if (value < 1) throw InvalidArgumentError(str(name, " must be at least 1, but is ", value));
}

// Bytes of the part of a variable that has one element along `axis`. What does not fit is the
// largest number: such a variable cannot exist, and its partition need not be exact.
int64_t bytes_of_row(const std::vector<int64_t>& shape, DType dtype, int64_t axis) {
  auto bytes = static_cast<int64_t>(c10::elementSize(dtype));
  for (size_t i = 0; i < shape.size(); ++i) {
    if (static_cast<int64_t>(i) == axis) continue;
    if (__builtin_mul_overflow(bytes, shape[i], &bytes)) return std::numeric_limits<int64_t>::max();
  }
  return bytes;
}

int64_t ceil_div(int64_t value, int64_t divisor) {
  return value / divisor + (value % divisor != 0);
}

// The number of elements along `axis`.
int64_t checked_rows(const char* partitioner, const std::vector<int64_t>& shape, int64_t axis) {
  if (axis < 0 || axis >= static_cast<int64_t>(shape.size())) {
    throw InvalidArgumentError(
        str(partitioner, " cannot divide axis ", axis, " of a variable of rank ", shape.size()));
  }
  return shape[static_cast<size_t>(axis)];
}

std::vector<int64_t> along(int64_t axis, size_t rank, int64_t shards) {
  std::vector<int64_t> partition(rank, 1);
  partition[static_cast<size_t>(axis)] = std::max<int64_t>(shards, 1);
  return partition;
}

}  // namespace

FixedShardsPartitioner::FixedShardsPartitioner(int64_t num_shards) : num_shards_(num_shards) {
  check_at_least_one("FixedShardsPartitioner's num_shards", num_shards);
}

std::vector<int64_t> FixedShardsPartitioner::operator()(const std::vector<int64_t>& shape, DType,
                                                        int64_t axis) const {
  const int64_t rows = checked_rows("FixedShardsPartitioner", shape, axis);
  return along(axis, shape.size(), std::min(num_shards_, rows));
}

MinSizePartitioner::MinSizePartitioner(const MinSizePartitionerOptions& options)
    : options_(options) {
  check_at_least_one("MinSizePartitionerOptions.min_shard_bytes", options.min_shard_bytes);
  check_at_least_one("MinSizePartitionerOptions.max_shards", options.max_shards);
}

std::vector<int64_t> MinSizePartitioner::operator()(const std::vector<int64_t>& shape, DType dtype,
                                                    int64_t axis) const {
  const int64_t rows = checked_rows("MinSizePartitioner", shape, axis);
  int64_t bytes = 0;
  if (__builtin_mul_overflow(bytes_of_row(shape, dtype, axis), rows, &bytes)) {
    bytes = std::numeric_limits<int64_t>::max();
  }
  return along(axis, shape.size(),
               std::min({rows, options_.max_shards, ceil_div(bytes, options_.min_shard_bytes)}));
}

MaxSizePartitioner::MaxSizePartitioner(const MaxSizePartitionerOptions& options)
    : options_(options) {
  check_at_least_one("MaxSizePartitionerOptions.max_shard_bytes", options.max_shard_bytes);
  if (options.max_shards != 0) {
    check_at_least_one("MaxSizePartitionerOptions.max_shards", options.max_shards);
  }
}

std::vector<int64_t> MaxSizePartitioner::operator()(const std::vector<int64_t>& shape, DType dtype,
                                                    int64_t axis) const {
  const int64_t rows = checked_rows("MaxSizePartitioner", shape, axis);
  const int64_t row_bytes = std::max<int64_t>(bytes_of_row(shape, dtype, axis), 1);
  const int64_t rows_each = std::max<int64_t>(options_.max_shard_bytes / row_bytes, 1);
  const int64_t shards = ceil_div(rows, rows_each);
  return along(axis, shape.size(),
               options_.max_shards == 0 ? shards : std::min(shards, options_.max_shards));
}

}  // namespace cohort::distribute::partitioners
