#include "cohort/testing/allocation_counter.h"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdlib>

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define COHORT_ALLOCATIONS_BELONG_TO_A_SANITIZER
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define COHORT_ALLOCATIONS_BELONG_TO_A_SANITIZER
#endif

namespace cohort::testing {
namespace {

// Constant-initialised: malloc is called before any constructor runs.
constinit std::atomic<int> num_counters{0};
constinit std::atomic<int64_t> num_mallocs{0};
constinit std::atomic<int64_t> num_reallocs{0};
constinit std::atomic<int64_t> num_mmaps{0};
constinit std::atomic<int64_t> num_bytes{0};
// The usual model may call malloc for a thread's first access.
[[gnu::tls_model("initial-exec")]] constinit thread_local bool this_thread_excluded = false;

[[maybe_unused]] void count(std::atomic<int64_t>& calls, size_t bytes) {
  if (num_counters.load(std::memory_order_relaxed) == 0 || this_thread_excluded) return;
  calls.fetch_add(1, std::memory_order_relaxed);
  num_bytes.fetch_add(static_cast<int64_t>(bytes), std::memory_order_relaxed);
}

AllocationCounts totals() {
  return {.mallocs = num_mallocs.load(),
          .reallocs = num_reallocs.load(),
          .mmaps = num_mmaps.load(),
          .bytes = num_bytes.load()};
}

}  // namespace

AllocationCounter::AllocationCounter() : at_start_(totals()) { ++num_counters; }

AllocationCounter::~AllocationCounter() { --num_counters; }

AllocationCounts AllocationCounter::counts() const {
  const AllocationCounts now = totals();
  return {.mallocs = now.mallocs - at_start_.mallocs,
          .reallocs = now.reallocs - at_start_.reallocs,
          .mmaps = now.mmaps - at_start_.mmaps,
          .bytes = now.bytes - at_start_.bytes};
}

ExcludeThisThread::ExcludeThisThread() : was_excluded_(this_thread_excluded) {
  this_thread_excluded = true;
}

ExcludeThisThread::~ExcludeThisThread() { this_thread_excluded = was_excluded_; }

#ifdef COHORT_ALLOCATIONS_BELONG_TO_A_SANITIZER
bool allocation_counting_available() { return false; }
#else
bool allocation_counting_available() { return true; }
#endif

}  // namespace cohort::testing

#ifndef COHORT_ALLOCATIONS_BELONG_TO_A_SANITIZER

// The C library calls these names through its symbol table, so those of the program win. What they
// pass on to are glibc's own entries beneath the public names; free needs no wrapper.
extern "C" {

void* __libc_malloc(size_t size);
void* __libc_calloc(size_t count, size_t size);
void* __libc_realloc(void* old, size_t size);
void* __libc_memalign(size_t alignment, size_t size);

namespace {
using cohort::testing::count;
using cohort::testing::num_mallocs;
using cohort::testing::num_mmaps;
using cohort::testing::num_reallocs;
}  // namespace

void* malloc(size_t size) noexcept {
  count(num_mallocs, size);
  return __libc_malloc(size);
}

void* calloc(size_t number, size_t size) noexcept {
  count(num_mallocs, number * size);
  return __libc_calloc(number, size);
}

void* realloc(void* old, size_t size) noexcept {
  count(num_reallocs, size);
  return __libc_realloc(old, size);
}

void* memalign(size_t alignment, size_t size) noexcept {
  count(num_mallocs, size);
  return __libc_memalign(alignment, size);
}

void* aligned_alloc(size_t alignment, size_t size) noexcept {
  count(num_mallocs, size);
  return __libc_memalign(alignment, size);
}

int posix_memalign(void** result, size_t alignment, size_t size) noexcept {
  if (alignment % sizeof(void*) != 0 || (alignment & (alignment - 1)) != 0 || alignment == 0) {
    return EINVAL;
  }
  count(num_mallocs, size);
  void* block = __libc_memalign(alignment, size);
  if (!block) return ENOMEM;
  *result = block;
  return 0;
}

void* mmap(void* address, size_t size, int protection, int flags, int fd, off_t offset) noexcept {
  count(num_mmaps, size);
  return reinterpret_cast<void*>(::syscall(SYS_mmap, address, size, protection, flags, fd, offset));
}

}  // extern "C"

#endif  // COHORT_ALLOCATIONS_BELONG_TO_A_SANITIZER
