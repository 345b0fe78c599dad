#include "cohort/parameter_server/variables/shard_rows.h"

#include <algorithm>
#include <string>

#include "cohort/core/error.h"

namespace cohort::internal {

int64_t shards_of(const distribute::partitioners::Partitioner& partitioner,
                  std::string_view variable, const std::vector<int64_t>& shape, DType dtype) {
  if (partitioner == nullptr || shape.empty()) return 1;
  const std::vector<int64_t> partition = partitioner(shape, dtype);
  bool divides_rows_alone = partition.size() == shape.size() && partition[0] > 0;
  for (size_t i = 1; divides_rows_alone && i < partition.size(); ++i) {
    divides_rows_alone = partition[i] == 1;
  }
  if (!divides_rows_alone) {
    std::string numbers;
    for (const int64_t number : partition) numbers += str(numbers.empty() ? "" : ", ", number);
    throw InvalidArgumentError(str(
        "variable_partitioner gave {", numbers, "} for variable '", variable, "' of rank ",
        shape.size(), "; it must give one number per dimension, of which the first is at least 1 ",
        "and all others are 1"));
  }
  return std::clamp<int64_t>(partition[0], 1, std::max<int64_t>(shape[0], 1));
}

std::vector<RowRange> split_rows(int64_t rows, int64_t shards) {
  const int64_t least = rows / shards;
  const int64_t longer = rows % shards;
  std::vector<RowRange> ranges;
  int64_t begin = 0;
  for (int64_t i = 0; i < shards; ++i) {
    const int64_t size = least + (i < longer ? 1 : 0);
    ranges.push_back({begin, begin + size});
    begin += size;
  }
  return ranges;
}

int64_t shard_of_row(int64_t row, int64_t rows, int64_t shards) {
  const int64_t least = rows / shards;
  const int64_t longer = rows % shards;
  const int64_t in_longer = longer * (least + 1);
  return row < in_longer ? row / (least + 1) : longer + (row - in_longer) / least;
}

std::vector<ShardIds> split_ids(const Tensor& ids, int64_t rows, int64_t shards) {
  if (shards == 1) return {{0, 0, ids}};
  std::vector<ShardIds> parts;
  const int64_t* const first = ids.data_ptr<int64_t>();
  const int64_t* const last = first + ids.numel();
  const int64_t* begin = first;
  const std::vector<RowRange> ranges = split_rows(rows, shards);
  for (size_t i = 0; i < ranges.size() && begin != last; ++i) {
    const int64_t* const end = std::lower_bound(begin, last, ranges[i].end);
    if (end == begin) continue;
    const Tensor own = ids.narrow(0, begin - first, end - begin);
    parts.push_back({i, begin - first, ranges[i].begin == 0 ? own : own - ranges[i].begin});
    begin = end;
  }
  return parts;
}

}  // namespace cohort::internal
