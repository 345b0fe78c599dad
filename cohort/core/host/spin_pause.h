// What a loop that looks at memory again and again does between two looks.
#pragma once

#include <atomic>

namespace cohort::internal {

// Leaves the core's units to its other thread for some cycles, and lets the loop end without a wrong guess.
inline void spin_pause() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#else
  std::atomic_signal_fence(std::memory_order_seq_cst);
#endif
}

}  // namespace cohort::internal
