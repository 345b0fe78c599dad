// Blocks of memory that records are read into, used again when nobody looks at them any more:
// touching fresh pages costs more than reading a file into them.
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <string_view>
#include <vector>

namespace cohort::internal {

struct RecordChunk {
  explicit RecordChunk(size_t capacity)
      : bytes(std::make_unique_for_overwrite<char[]>(capacity)), capacity(capacity) {}

  std::unique_ptr<char[]> bytes;
  size_t capacity;
  size_t size = 0;
  std::vector<std::string_view> records;  // into `bytes`
};

// Thread safety: take() from one thread; chunks may be given back on any, also after the pool is
// gone.
class ChunkPool : public std::enable_shared_from_this<ChunkPool> {
 public:
  ChunkPool() { free_.reserve(kMostFree); }

  // An empty one of `capacity` bytes or somewhat more.
  std::shared_ptr<RecordChunk> take(size_t capacity);

 private:
  static constexpr size_t kMostFree = 4;

  void give_back(std::unique_ptr<RecordChunk> chunk);  // takes no memory

  std::mutex mutex_;
  std::vector<std::unique_ptr<RecordChunk>> free_;  // guarded by mutex_
};

}  // namespace cohort::internal
