#include "cohort/collective/local_buffers.h"

#include <c10/util/SmallVector.h>

#include <cstring>
#include <numeric>

#include "cohort/collective/slices.h"

namespace cohort::collective {

void fold_buffers(std::span<const Buffer> buffers) {
  const Buffer& first = buffers[0];
  check_can_add(first.dtype);
  if (buffers.size() == 1) return;
  c10::SmallVector<const void*, 8> sources;
  for (const Buffer& buffer : buffers) sources.push_back(buffer.data);
  add_slices(first.data, {sources.data(), sources.size()}, first.count, first.dtype);
}

void copy_to_others(std::span<const Buffer> buffers, int64_t begin, int64_t count) {
  const Buffer& first = buffers[0];
  const auto bytes = static_cast<size_t>(first.at(begin + count) - first.at(begin));
  for (const Buffer& other : buffers.subspan(1)) {
    std::memcpy(other.at(begin), first.at(begin), bytes);
  }
}

int64_t offset_of(std::span<const int64_t> counts, int rank) {
  return std::accumulate(counts.begin(), counts.begin() + rank, int64_t{0});
}

}  // namespace cohort::collective
