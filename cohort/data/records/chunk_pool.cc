#include "cohort/data/records/chunk_pool.h"

#include <utility>

namespace cohort::internal {
namespace {

constexpr size_t kMostBytesKept = size_t{8} << 20;

}  // namespace

std::shared_ptr<RecordChunk> ChunkPool::take(size_t capacity) {
  std::unique_ptr<RecordChunk> chunk;
  {
    const std::lock_guard lock(mutex_);
    while (!free_.empty() && !chunk) {
      // One of another size is from before the records grew or shrank, and of no more use.
      if (free_.back()->capacity >= capacity && free_.back()->capacity / 2 <= capacity) {
        chunk = std::move(free_.back());
      }
      free_.pop_back();
    }
  }
  if (!chunk) chunk = std::make_unique<RecordChunk>(capacity);
  chunk->size = 0;
  chunk->records.clear();
  return {chunk.release(), [pool = weak_from_this()](RecordChunk* used) {
            std::unique_ptr<RecordChunk> owned(used);
            if (const auto alive = pool.lock()) alive->give_back(std::move(owned));
          }};
}

void ChunkPool::give_back(std::unique_ptr<RecordChunk> chunk) {
  const std::lock_guard lock(mutex_);
  if (free_.size() < kMostFree && chunk->capacity <= kMostBytesKept) {
    free_.push_back(std::move(chunk));
  }
}

}  // namespace cohort::internal
