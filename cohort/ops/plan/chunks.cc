#include "cohort/ops/plan/chunks.h"

#include <algorithm>

namespace cohort::internal::plan {

std::vector<Part> divide(int64_t total, int64_t parts) {
  std::vector<Part> divided;
  int64_t first = 0;
  for (int64_t i = 0; i < parts; ++i) {
    const int64_t count = total / parts + (i < total % parts ? 1 : 0);
    divided.push_back({first, count});
    first += count;
  }
  return divided;
}

Chunks::Chunks(int64_t batch, int64_t widest, int64_t least) : batch(batch) {
  constexpr int64_t kCached = int64_t{1} << 18;  // elements: half of a second-level cache
  constexpr int64_t kMostLanes = 8;
  const int64_t wanted = std::max(
      least, std::clamp<int64_t>(kCached / std::max<int64_t>(widest, 1), 1, batch <= 32 ? 4 : 8));
  const std::vector<Part> parts =
      divide(batch, std::max<int64_t>((batch + wanted - 1) / wanted, 1));
  for (const Part& part : parts) {
    if (std::find(sizes.begin(), sizes.end(), part.count) == sizes.end()) {
      sizes.push_back(part.count);
    }
    largest = std::max(largest, part.count);
  }
  const auto count = static_cast<int64_t>(parts.size());
  const std::vector<Part> runs = divide(count, std::min(count, kMostLanes));
  for (size_t lane = 0; lane < runs.size(); ++lane) {
    lanes.emplace_back();
    for (int64_t i = 0; i < runs[lane].count; ++i) {
      lanes.back().push_back(
          {parts[static_cast<size_t>(runs[lane].first + i)], static_cast<int>(lane)});
    }
  }
}

}  // namespace cohort::internal::plan
