#include "cohort/collective/buffer_pool.h"

namespace cohort::collective {

BufferPool::Piece BufferPool::take(int64_t bytes) {
  std::lock_guard lock(mutex_);
  auto best = free_.end();
  for (auto it = free_.begin(); it != free_.end(); ++it) {
    if (it->count >= bytes && (best == free_.end() || it->count < best->count)) best = it;
  }
  if (best == free_.end()) {
    free_.reserve(++made_);  // for when all are given back
    Buffer fresh = communicator_.buffer(bytes);
    fresh.count = bytes;
    fresh.dtype = uint8;
    return {this, fresh};
  }
  const Buffer buffer = *best;
  free_.erase(best);
  return {this, buffer};
}

void BufferPool::give_back(const Buffer& buffer) {
  std::lock_guard lock(mutex_);
  free_.push_back(buffer);
}

}  // namespace cohort::collective
