#include "cohort/core/bytes/kept_blocks.h"

#include <new>
#include <utility>

namespace cohort::internal {
namespace {

constexpr size_t kUnit = 64;
constexpr size_t kSizes = 32;
constexpr int kMost = 32;

// A free block points to the next one.
struct Free {
  Free* next;
};

// The free blocks of this thread. The object is never destroyed, because other objects may outlive
// EmptiesAtThreadEnd.
struct Kept {
  Free* first[kSizes];
  int count[kSizes];
  bool closed;
};
constinit thread_local Kept kept{};

struct EmptiesAtThreadEnd {
  ~EmptiesAtThreadEnd() {
    kept.closed = true;
    for (Free*& first : kept.first) {
      while (first != nullptr) ::operator delete(std::exchange(first, first->next));
    }
  }
};

// Nothing is kept under AddressSanitizer, which looks for uses of freed memory.
#ifdef __SANITIZE_ADDRESS__
constexpr bool kKeeps = false;
#else
constexpr bool kKeeps = true;
#endif

size_t size_class(size_t bytes) { return bytes == 0 ? 0 : (bytes - 1) / kUnit; }

}  // namespace

void* take_block(size_t bytes) {
  const size_t size = size_class(bytes);
  if (!kKeeps || size >= kSizes) return ::operator new(bytes);
  Free* const block = kept.first[size];
  if (block == nullptr) return ::operator new((size + 1) * kUnit);
  kept.first[size] = block->next;
  --kept.count[size];
  return block;
}

void give_back_block(void* block, size_t bytes) noexcept {
  const size_t size = size_class(bytes);
  if (!kKeeps || size >= kSizes || kept.closed || kept.count[size] == kMost) {
    ::operator delete(block);
    return;
  }
  thread_local const EmptiesAtThreadEnd empties;
  kept.first[size] = new (block) Free{kept.first[size]};
  ++kept.count[size];
}

}  // namespace cohort::internal
