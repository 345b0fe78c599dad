#include "cohort/collective/shared_memory/shared_parts.h"

#include <algorithm>
#include <functional>

namespace cohort::collective::shared_memory {

using internal::str;

SharedParts::SharedParts(const SharedFile& file, const Layout& layout, int rank)
    : file_(file), layout_(layout), rank_(rank), parts_(static_cast<size_t>(layout.num_tasks)) {}

char* SharedParts::take(int64_t bytes) {
  if (bytes < 0) throw InvalidArgumentError(str("a buffer of ", bytes, " bytes was asked for"));
  const int64_t size = Layout::pages(std::max<int64_t>(bytes, 1));
  const std::lock_guard lock(mutex_);
  if (size > layout_.region_bytes - taken_) {
    throw ResourceExhaustedError(str("a task shares ", layout_.region_bytes,
                                     " bytes at most, of which ", taken_, " are taken; ", bytes,
                                     " more were asked for"));
  }
  const int64_t begin = layout_.region(rank_) + taken_;
  file_.reserve(begin, size);
  std::vector<Part>& own = parts_[static_cast<size_t>(rank_)];
  own.push_back({begin, file_.map(begin, size)});
  taken_ += size;
  return own.back().memory.data();
}

void SharedParts::locate(const Buffer& buffer, Call& call) const {
  const auto* data = static_cast<const char*>(buffer.data);
  const auto less = std::less_equal<const char*>();
  const std::lock_guard lock(mutex_);
  for (const Part& part : parts_[static_cast<size_t>(rank_)]) {
    const char* begin = part.memory.data();
    const int64_t bytes = part.memory.bytes();
    if (!less(begin, data) || !less(data + buffer.bytes(), begin + bytes)) continue;
    call.part_begin = part.begin;
    call.part_bytes = bytes;
    call.offset = data - begin;
    return;
  }
}

const SharedParts::Part* SharedParts::find(int rank, int64_t begin) const {
  const std::vector<Part>& parts = parts_[static_cast<size_t>(rank)];
  const auto found = std::find_if(parts.begin(), parts.end(),
                                  [&](const Part& part) { return part.begin == begin; });
  return found == parts.end() ? nullptr : &*found;
}

char* SharedParts::values_of(int rank, const Call& call) {
  const std::lock_guard lock(mutex_);
  const Part* part = find(rank, call.part_begin);
  if (part == nullptr) {
    const int64_t place = call.part_begin - layout_.region(rank);
    const bool is_inside = place >= 0 && call.part_bytes > 0 && place % kPageBytes == 0 &&
                           call.part_bytes <= layout_.region_bytes - place;
    if (!is_inside) {
      throw DataLossError(str("task ", rank, " says that it shares ", call.part_bytes, " bytes at ",
                              call.part_begin, ", which is not in its region"));
    }
    std::vector<Part>& parts = parts_[static_cast<size_t>(rank)];
    parts.push_back({call.part_begin, file_.map(call.part_begin, call.part_bytes)});
    part = &parts.back();
  }
  const auto bytes =
      call.count * static_cast<int64_t>(c10::elementSize(static_cast<DType>(call.dtype)));
  if (call.offset < 0 || bytes < 0 || bytes > part->memory.bytes() - call.offset) {
    throw DataLossError(str("task ", rank, " says that its values lie beyond what it shares"));
  }
  return part->memory.data() + call.offset;
}

}  // namespace cohort::collective::shared_memory
