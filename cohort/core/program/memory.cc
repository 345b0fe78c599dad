#include "cohort/core/program/memory.h"

#if defined(__GLIBC__)
#include <malloc.h>
#endif

namespace cohort::config {

bool keep_freed_memory() {
#if defined(__GLIBC__)
  // The largest block that glibc may serve from its heaps rather than by mmap.
  constexpr int kLargestHeapBlock = 32 << 20;
  constexpr int kNeverTrim = 1 << 30;
  return mallopt(M_MMAP_THRESHOLD, kLargestHeapBlock) == 1 &&
         mallopt(M_TRIM_THRESHOLD, kNeverTrim) == 1 && mallopt(M_TOP_PAD, 64 << 20) == 1;
#else
  return false;
#endif
}

}  // namespace cohort::config
