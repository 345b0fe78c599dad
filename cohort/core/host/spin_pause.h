// The pause of a loop that polls memory, between two looks.
#pragma once

#include <atomic>

namespace cohort::internal {

// Leaves the core's units to its other hardware thread for some cycles, and lets the loop end
// without a wrong speculation.
inline void spin_pause() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#else
  std::atomic_signal_fence(std::memory_order_seq_cst);
#endif
}

}  // namespace cohort::internal
