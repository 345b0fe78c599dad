#include "cohort/train/bundle/copy_box.h"

#include <algorithm>
#include <cstring>

namespace cohort::internal {
namespace {

struct Dimension {
  int64_t size = 0;  // of the common box
  int64_t from_begin = 0;
  int64_t to_begin = 0;
  uint64_t from_stride = 0;  // bytes
  uint64_t to_stride = 0;
};

void copy_dimension(const std::vector<Dimension>& dimensions, size_t d, const char* from, char* to,
                    uint64_t item_bytes) {
  if (d == dimensions.size()) {
    std::memcpy(to, from, item_bytes);
    return;
  }
  const Dimension& dimension = dimensions[d];
  from += static_cast<uint64_t>(dimension.from_begin) * dimension.from_stride;
  to += static_cast<uint64_t>(dimension.to_begin) * dimension.to_stride;
  if (d + 1 == dimensions.size()) {
    std::memcpy(to, from, static_cast<uint64_t>(dimension.size) * item_bytes);
    return;
  }
  for (int64_t i = 0; i < dimension.size; ++i) {
    copy_dimension(dimensions, d + 1, from, to, item_bytes);
    from += dimension.from_stride;
    to += dimension.to_stride;
  }
}

}  // namespace

bool boxes_meet(const train::TensorSlice& a, const train::TensorSlice& b) {
  for (size_t d = 0; d < a.start.size(); ++d) {
    const int64_t begin = std::max(a.start[d], b.start[d]);
    const int64_t end = std::min(a.start[d] + a.length[d], b.start[d] + b.length[d]);
    if (begin >= end) return false;
  }
  return true;
}

void copy_box(const CopyBox& copy) {
  if (!boxes_meet(copy.from_slice, copy.to_slice)) return;
  std::vector<Dimension> dimensions(copy.from_slice.start.size());
  uint64_t from_stride = copy.item_bytes;
  uint64_t to_stride = copy.item_bytes;
  for (size_t d = dimensions.size(); d-- > 0;) {
    const int64_t begin = std::max(copy.from_slice.start[d], copy.to_slice.start[d]);
    const int64_t end = std::min(copy.from_slice.start[d] + copy.from_slice.length[d],
                                 copy.to_slice.start[d] + copy.to_slice.length[d]);
    dimensions[d] = {.size = end - begin,
                     .from_begin = begin - copy.from_slice.start[d],
                     .to_begin = begin - copy.to_slice.start[d],
                     .from_stride = from_stride,
                     .to_stride = to_stride};
    from_stride *= static_cast<uint64_t>(copy.from_slice.length[d]);
    to_stride *= static_cast<uint64_t>(copy.to_slice.length[d]);
  }
  copy_dimension(dimensions, 0, static_cast<const char*>(copy.from), static_cast<char*>(copy.to),
                 copy.item_bytes);
}

}  // namespace cohort::internal
