#include "tests/fuzz/peak_memory.h"

#include <atomic>
#include <cstddef>

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define COHORT_SANITIZER_HOOKS
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define COHORT_SANITIZER_HOOKS
#endif

namespace cohort::fuzz {
namespace {

// Constant-initialised: memory is taken before any constructor runs. Atomic because a fuzzer may
// have threads of its own.
constinit std::atomic<int64_t> live{0};
constinit std::atomic<int64_t> peak{0};

void count_taken(size_t bytes) {
  const auto size = static_cast<int64_t>(bytes);
  const int64_t now = live.fetch_add(size) + size;
  int64_t highest = peak.load();
  while (now > highest && !peak.compare_exchange_weak(highest, now)) {
  }
}

void count_given_back(size_t bytes) { live.fetch_sub(static_cast<int64_t>(bytes)); }

}  // namespace

PeakMemory::PeakMemory() : at_start_(live.load()) { peak.store(at_start_); }

int64_t PeakMemory::peak_bytes() const { return peak.load() - at_start_; }

}  // namespace cohort::fuzz

#ifdef COHORT_SANITIZER_HOOKS

// The sanitizer's interface; its header comes with clang only.
extern "C" {
int __sanitizer_install_malloc_and_free_hooks(void (*on_malloc)(const volatile void*, size_t),
                                              void (*on_free)(const volatile void*));
size_t __sanitizer_get_allocated_size(const volatile void* block);
// AddressSanitizer's: what is kept after it was freed, 256 MB by default and as much again around
// many small blocks, counts against libFuzzer's limit.
const char* __asan_default_options() { return "quarantine_size_mb=64"; }
}

namespace cohort::fuzz {
namespace {

void on_malloc(const volatile void*, size_t bytes) { count_taken(bytes); }

void on_free(const volatile void* block) {
  if (block != nullptr) count_given_back(__sanitizer_get_allocated_size(block));
}

[[maybe_unused]] const int hooks_installed =
    __sanitizer_install_malloc_and_free_hooks(on_malloc, on_free);

}  // namespace
}  // namespace cohort::fuzz

#else

#include <malloc.h>

#include <cstdlib>
#include <new>

namespace cohort::fuzz {
namespace {

void* take(size_t bytes) {
  void* block = std::malloc(bytes == 0 ? 1 : bytes);
  if (block == nullptr) throw std::bad_alloc();
  count_taken(malloc_usable_size(block));
  return block;
}

void give_back(void* block) noexcept {
  if (block == nullptr) return;
  count_given_back(malloc_usable_size(block));
  std::free(block);
}

}  // namespace
}  // namespace cohort::fuzz

void* operator new(size_t bytes) { return cohort::fuzz::take(bytes); }
void* operator new[](size_t bytes) { return cohort::fuzz::take(bytes); }
void operator delete(void* block) noexcept { cohort::fuzz::give_back(block); }
void operator delete[](void* block) noexcept { cohort::fuzz::give_back(block); }
void operator delete(void* block, size_t) noexcept { cohort::fuzz::give_back(block); }
void operator delete[](void* block, size_t) noexcept { cohort::fuzz::give_back(block); }

#endif  // COHORT_SANITIZER_HOOKS
