// Numbers too small for the normal range, which processors compute with a hundred times as slowly.
#pragma once

#include <cstdint>

namespace cohort::internal {

// How the calling thread rounds, and what it does about denormal numbers: the processor's own form of
// it, 0 where that is neither x86-64 nor AArch64.
uint64_t float_control_word();
void set_float_control_word(uint64_t word);

// For its lifetime, the calling thread takes such numbers for zero and gives zero for them, and so do
// those that help it (intra_op_parallel.h). libtorch's OpenMP threads, intra_op_threads() of them, do so
// from then on, for all operations of this thread: to set them back would cost a meeting.
//
// A unit that no sample reaches any more has gradients of zero, and Adam's mean of them shrinks
// until it is such a number, where rounding keeps it for ever: guide 004's model trained ten times
// as slowly after 1,500 steps. TensorFlow's threads do the same (tsl/platform/threadpool.cc). Does
// nothing on processors other than x86-64 and AArch64. Thread safety: any thread; one is destroyed
// on the thread that made it.
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
