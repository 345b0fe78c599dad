#include "cohort/core/files/aligned_buffer.h"

#include <mutex>
#include <new>
#include <vector>

namespace cohort::internal {
namespace {

constexpr std::align_val_t kAlignment{kDirectAlignment};
constexpr size_t kMostKept = 2;  // what one file writes through

struct Pool {
  std::mutex mutex;
  std::vector<char*> kept;  // guarded by mutex
};

// Never destroyed: a file may be closed by a destructor that runs after main.
Pool& pool() {
  static Pool& pool = *new Pool{.mutex = {}, .kept = {}};
  return pool;
}

AlignedBuffer allocate(size_t bytes) {
  return {static_cast<char*>(::operator new(bytes, kAlignment)), GiveBackBuffer{bytes}};
}

}  // namespace

void GiveBackBuffer::operator()(char* buffer) const {
  if (bytes == kBigBufferBytes) {
    const std::lock_guard lock(pool().mutex);
    if (pool().kept.size() < kMostKept) {
      pool().kept.push_back(buffer);
      return;
    }
  }
  ::operator delete(buffer, kAlignment);
}

AlignedBuffer big_buffer() {
  {
    const std::lock_guard lock(pool().mutex);
    pool().kept.reserve(kMostKept);  // here, where it may throw, and not where one is given back
    if (!pool().kept.empty()) {
      AlignedBuffer buffer(pool().kept.back(), GiveBackBuffer{kBigBufferBytes});
      pool().kept.pop_back();
      return buffer;
    }
  }
  return allocate(kBigBufferBytes);
}

AlignedBuffer small_buffer(size_t bytes) {
  return allocate((bytes + kDirectAlignment - 1) / kDirectAlignment * kDirectAlignment);
}

}  // namespace cohort::internal
