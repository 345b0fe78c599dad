#include "cohort/cluster/rpc/bulk_memory.h"

#include <list>
#include <mutex>
#include <new>

namespace cohort::internal::rpc {
namespace {

// Below, the allocator's own caches serve.
constexpr size_t kBigBytes = size_t{1} << 18;
constexpr size_t kMostKeptBytes = size_t{256} << 20;

void free_block(char* data) { ::operator delete (data, std::align_val_t{kBulkAlignment}); }

class Blocks {
 public:
  char* take(size_t bytes) {
    {
      const std::lock_guard lock(mutex_);
      for (auto block = kept_.begin(); block != kept_.end(); ++block) {
        if (block->bytes != bytes) continue;
        char* const data = block->data;
        kept_bytes_ -= bytes;
        kept_.erase(block);
        return data;
      }
    }
    return static_cast<char*>(::operator new (bytes, std::align_val_t{kBulkAlignment}));
  }

  // The newest are found first; the oldest make room.
  void give_back(char* data, size_t bytes) {
    std::list<Block> freed;
    {
      const std::lock_guard lock(mutex_);
      kept_.push_front({data, bytes});
      kept_bytes_ += bytes;
      while (kept_bytes_ > kMostKeptBytes) {
        kept_bytes_ -= kept_.back().bytes;
        freed.splice(freed.end(), kept_, std::prev(kept_.end()));
      }
    }
    for (const Block& block : freed) free_block(block.data);
  }

 private:
  struct Block {
    char* data;
    size_t bytes;
  };
  std::mutex mutex_;
  std::list<Block> kept_;
  size_t kept_bytes_ = 0;
};

// Never destroyed: messages may outlive the program's statics.
Blocks& blocks() {
  static auto* const instance = new Blocks;
  return *instance;
}

}  // namespace

std::shared_ptr<char> bulk_memory(size_t bytes) {
  if (bytes < kBigBytes) {
    return {static_cast<char*>(::operator new (bytes, std::align_val_t{kBulkAlignment})),
            free_block};
  }
  return {blocks().take(bytes), [bytes](char* data) { blocks().give_back(data, bytes); }};
}

}  // namespace cohort::internal::rpc
