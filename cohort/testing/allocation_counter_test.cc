#include "cohort/testing/allocation_counter.h"

#include <gmock/gmock.h>
#include <sys/mman.h>

#include <cstdlib>
#include <memory>
#include <thread>

namespace cohort::testing {
namespace {

// Through a volatile pointer, or the compiler would remove a pair of malloc and free.
template <class T>
T* keep(T* pointer) {
  T* volatile kept = pointer;
  return kept;
}

// What the counts must be: nothing where a sanitizer owns the allocator.
int64_t if_available(int64_t count) { return allocation_counting_available() ? count : 0; }

TEST(AllocationCounterTest, CountsEachKind) {
  const AllocationCounter counter;
  std::free(keep(std::malloc(10)));
  std::free(keep(std::calloc(2, 10)));
  std::free(keep(std::aligned_alloc(64, 64)));
  delete keep(new int64_t(1));
  EXPECT_EQ(counter.counts().mallocs, if_available(4));
  EXPECT_EQ(counter.counts().bytes, if_available(10 + 20 + 64 + 8));

  void* block = keep(std::malloc(1));
  block = keep(std::realloc(block, 100));
  std::free(block);
  EXPECT_EQ(counter.counts().reallocs, if_available(1));

  void* page = ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(page, MAP_FAILED);
  static_cast<char*>(page)[0] = 1;
  ::munmap(page, 4096);
  EXPECT_EQ(counter.counts().mmaps, if_available(1));
  EXPECT_EQ(counter.counts().total(), if_available(7));
}

TEST(AllocationCounterTest, CountsNothingWhereNothingIsAllocated) {
  const AllocationCounter counter;
  int64_t sum = 0;
  for (int64_t i = 0; i < 1000; ++i) sum += *keep(&i);
  EXPECT_EQ(sum, 499500);
  EXPECT_EQ(counter.counts().total(), 0);
}

TEST(AllocationCounterTest, MemoryIsAlignedAndZeroed) {
  void* block = nullptr;
  ASSERT_EQ(::posix_memalign(&block, 4096, 100), 0);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(block) % 4096, 0u);
  std::free(block);
  const std::unique_ptr<char, void (*)(void*)> zeros(static_cast<char*>(std::calloc(1000, 1)),
                                                     std::free);
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(zeros.get()[i], 0);
}

TEST(AllocationCounterTest, CountsOtherThreadsAndExcludesOnRequest) {
  const AllocationCounter counter;
  const auto counts_of_thread = [&](auto body) {
    const int64_t before = counter.counts().bytes;
    std::thread(body).join();
    return counter.counts().bytes - before;
  };
  constexpr int64_t kBytes = 1 << 20;
  const auto allocate = [] { std::free(keep(std::malloc(kBytes))); };
  EXPECT_GE(counts_of_thread(allocate), if_available(kBytes));
  const auto allocate_excluded = [&] {
    const ExcludeThisThread excluded;
    allocate();
  };
  EXPECT_LT(counts_of_thread(allocate_excluded), kBytes);
}

TEST(AllocationCounterTest, ExclusionNestsAndEnds) {
  const AllocationCounter counter;
  {
    const ExcludeThisThread outer;
    { const ExcludeThisThread inner; }
    delete keep(new int(1));
  }
  EXPECT_EQ(counter.counts().total(), 0);
  delete keep(new int(1));
  EXPECT_EQ(counter.counts().total(), if_available(1));
}

}  // namespace
}  // namespace cohort::testing
