// The pause of a loop that polls memory, between two looks.
#pragma once

#include <atomic>

namespace cohort::internal {

// Leaves the core's units to its other hardware thread for some cycles, and lets the loop end
// without a wrong speculation. ARM64's `yield` does nothing on most cores; `isb` takes about as
// long as x86-64's `pause`.
inline void spin_pause() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("isb" : : : "memory");
#else
  std::atomic_signal_fence(std::memory_order_seq_cst);
#endif
}

}  // namespace cohort::internal
