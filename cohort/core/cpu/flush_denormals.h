// Numbers too small for the normal range, which processors compute with a hundred times as slowly.
#pragma once

#include <cstdint>

namespace cohort::internal {

// The calling thread's control word, in the processor's own form: how the thread rounds, and what
// it does about denormal numbers. 0 on processors other than x86-64 and AArch64.
uint64_t float_control_word();
void set_float_control_word(uint64_t word);

// During its lifetime, the calling thread takes denormal numbers for zero and gives zero for them.
// So do the threads that help it (intra_op_parallel.h). libtorch's OpenMP threads,
// intra_op_threads() of them, do so from then on, for all operations of this thread: setting them
// back would cost a barrier.
//
// A unit that no sample reaches any more has gradients of zero. Adam's mean of them shrinks until
// it is denormal, and rounding keeps it so for ever: guide 004's model trained ten times as slowly
// after 1,500 steps. TensorFlow's threads flush denormals, too (tsl/platform/threadpool.cc). Does
// nothing on processors other than x86-64 and AArch64.
// Thread safety: any thread; an object is destroyed on the thread that made it.
class ScopedFlushDenormals {
 public:
  ScopedFlushDenormals();
  ~ScopedFlushDenormals();
  ScopedFlushDenormals(const ScopedFlushDenormals&) = delete;
  ScopedFlushDenormals& operator=(const ScopedFlushDenormals&) = delete;

 private:
  uint64_t previous_;  // the thread's control word
};

}  // namespace cohort::internal
