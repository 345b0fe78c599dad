// Numbers too small for the normal range, which processors compute with a hundred times as slowly.
#pragma once

#include <cstdint>

namespace cohort::internal {

// For its lifetime, the calling thread takes such numbers for zero and gives zero for them. The
// threads that share its tensor operations (libtorch's OpenMP threads, intra_op_threads() of them)
// do so from then on, for all operations of this thread: to set them back would cost a meeting.
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
