#include "cohort/core/cpu/flush_denormals.h"

#include <ATen/Parallel.h>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace cohort::internal {

#if defined(__x86_64__)
static constexpr uint64_t kFlush = 0x8000 | 0x0040;  // of results; of operands
uint64_t float_control_word() { return _mm_getcsr(); }
void set_float_control_word(uint64_t word) { _mm_setcsr(static_cast<unsigned>(word)); }
#elif defined(__aarch64__)
static constexpr uint64_t kFlush = uint64_t{1} << 24;
uint64_t float_control_word() {
  uint64_t word;
  asm volatile("mrs %0, fpcr" : "=r"(word));
  return word;
}
void set_float_control_word(uint64_t word) { asm volatile("msr fpcr, %0" : : "r"(word)); }
#else
static constexpr uint64_t kFlush = 0;
uint64_t float_control_word() { return 0; }
void set_float_control_word(uint64_t) {}
#endif

namespace {

// Sets this on the threads that libtorch's earlier operations have started; later threads inherit
// the control word of the thread that starts them. (at::parallel_for starts threads only in code
// that is compiled with OpenMP. This file is, if the library is built by GCC without sanitizers.)
void flush_in_openmp_team() {
  thread_local int done_for = 1;
  const int threads = at::get_num_threads();
  if (threads == done_for || at::in_parallel_region()) return;
  done_for = threads;
  at::parallel_for(0, threads, 1,
                   [](int64_t, int64_t) { set_float_control_word(float_control_word() | kFlush); });
}

}  // namespace

ScopedFlushDenormals::ScopedFlushDenormals() : previous_(float_control_word()) {
  if ((previous_ & kFlush) == kFlush) return;
  set_float_control_word(previous_ | kFlush);
  flush_in_openmp_team();
}

// Flags that operations have raised in between stay raised on x86-64, where they share the word.
ScopedFlushDenormals::~ScopedFlushDenormals() {
  set_float_control_word((float_control_word() & ~kFlush) | (previous_ & kFlush));
}

}  // namespace cohort::internal
