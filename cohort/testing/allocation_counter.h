// Counts the process's allocations, to show that a path allocates nothing.
//
//   AllocationCounter counter;
//   for (int i = 0; i < 100; ++i) strategy.run(step);
//   EXPECT_EQ(counter.counts().total(), 0);
//
// A program gets it by linking cohort_testing_alloc, which puts itself in front of the C library's
// malloc and mmap; no other program pays for it.
#pragma once

#include <cstdint>

namespace cohort::testing {

// Whether allocations are counted: not in a program built with AddressSanitizer or ThreadSanitizer,
// which put themselves in that place; there all counts stay 0.
bool allocation_counting_available();

struct AllocationCounts {
  int64_t mallocs = 0;   // malloc, calloc, aligned allocation, operator new
  int64_t reallocs = 0;  // realloc, whether or not it moved
  int64_t mmaps = 0;     // calls of mmap, without those that malloc makes itself
  int64_t bytes = 0;     // asked for by all of them

  int64_t total() const { return mallocs + reallocs + mmaps; }
};

// Counts what all threads allocate from its construction on. Several may live at once.
// Thread safety: any thread.
class AllocationCounter {
 public:
  AllocationCounter();
  ~AllocationCounter();
  AllocationCounter(const AllocationCounter&) = delete;
  AllocationCounter& operator=(const AllocationCounter&) = delete;

  // Since the construction, up to now.
  AllocationCounts counts() const;

 private:
  AllocationCounts at_start_;
};

// While it lives, what this thread allocates does not count.
class ExcludeThisThread {
 public:
  ExcludeThisThread();
  ~ExcludeThisThread();
  ExcludeThisThread(const ExcludeThisThread&) = delete;
  ExcludeThisThread& operator=(const ExcludeThisThread&) = delete;

 private:
  bool was_excluded_;
};

}  // namespace cohort::testing
