// The bytes that the tasks of a group have passed to Communicator::gather_bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "cohort/collective/buffer_pool.h"

namespace cohort::collective {

// Keeps its memory from call to call.
// Thread safety: none.
class GatheredBytes {
 public:
  // pool: of the communicator that is called; must outlive it.
  explicit GatheredBytes(BufferPool& pool) : pool_(pool) {}

  // The bytes of the task of this rank; until the next gather_bytes of the communicator.
  std::span<const char> of(int rank) const { return parts_[static_cast<size_t>(rank)]; }

  std::span<const std::span<const char>> all() const { return parts_; }

  // For communicators: where the bytes of each task are, in the order of ranks.
  std::vector<std::span<const char>>& parts() { return parts_; }
  // For communicators that must copy them: memory of the pool, which stays until it is asked for
  // more.
  char* memory(int64_t bytes) {
    if (memory_.bytes() < bytes) memory_ = pool_.take(bytes + bytes / 2);
    return memory_.data();
  }

 private:
  BufferPool& pool_;
  std::vector<std::span<const char>> parts_;
  BufferPool::Piece memory_;
};

}  // namespace cohort::collective
