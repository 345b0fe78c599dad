#include "cohort/core/flush_denormals.h"

#include <ATen/Parallel.h>

#include "cohort/core/intra_op_parallel.h"

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace cohort::internal {
namespace {

#if defined(__x86_64__)
constexpr uint64_t kFlush = 0x8000 | 0x0040;  // of results; of operands
uint64_t control_word() { return _mm_getcsr(); }
void set_control_word(uint64_t word) { _mm_setcsr(static_cast<unsigned>(word)); }
#elif defined(__aarch64__)
constexpr uint64_t kFlush = uint64_t{1} << 24;
uint64_t control_word() {
  uint64_t word;
  asm volatile("mrs %0, fpcr" : "=r"(word));
  return word;
}
void set_control_word(uint64_t word) { asm volatile("msr fpcr, %0" : : "r"(word)); }
#else
constexpr uint64_t kFlush = 0;
uint64_t control_word() { return 0; }
void set_control_word(uint64_t) {}
#endif

// A thread inherits the control word of the one that starts it, so this is for those that
// libtorch's earlier operations have started.
void flush_in_team() {
  thread_local int done_for = 1;
  const int threads = at::get_num_threads();
  if (threads == done_for || at::in_parallel_region()) return;
  done_for = threads;
  intra_op_parallel_for(0, threads, 1,
                        [](int64_t, int64_t) { set_control_word(control_word() | kFlush); });
}

}  // namespace

ScopedFlushDenormals::ScopedFlushDenormals() : previous_(control_word()) {
  if ((previous_ & kFlush) == kFlush) return;
  set_control_word(previous_ | kFlush);
  flush_in_team();
}

// Flags that operations have raised in between stay raised on x86-64, where they share the word.
ScopedFlushDenormals::~ScopedFlushDenormals() {
  set_control_word((control_word() & ~kFlush) | (previous_ & kFlush));
}

}  // namespace cohort::internal
