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
    set_aside_.reserve(made_);
    Buffer fresh = source_.buffer(bytes);
    fresh.count = bytes;
    fresh.dtype = uint8;
    return {this, fresh};
  }
  const Buffer buffer = *best;
  free_.erase(best);
  return {this, buffer};
}

void BufferPool::set_aside(Piece piece) {
  if (piece.pool_ == nullptr) return;
  std::lock_guard lock(mutex_);
  set_aside_.push_back(std::move(piece));
}

std::vector<BufferPool::Piece> BufferPool::take_set_aside() {
  std::vector<Piece> taken;
  std::lock_guard lock(mutex_);
  if (set_aside_.empty()) return taken;
  taken.reserve(set_aside_.size());
  for (Piece& piece : set_aside_) taken.push_back(std::move(piece));
  set_aside_.clear();
  return taken;
}

void BufferPool::give_back(const Buffer& buffer) {
  std::lock_guard lock(mutex_);
  free_.push_back(buffer);
}

}  // namespace cohort::collective
