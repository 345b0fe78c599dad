// Sleeping until another thread or process changes a number in memory that both map.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

namespace cohort::internal {

static_assert(std::atomic<uint32_t>::is_always_lock_free && sizeof(std::atomic<uint32_t>) == 4);

// Sleeps while `word` holds `value`, at most for `timeout`; may return earlier.
void futex_wait(std::atomic<uint32_t>& word, uint32_t value, std::chrono::nanoseconds timeout);
// Wakes all that sleep there, in whatever process.
void futex_wake_all(std::atomic<uint32_t>& word);

}  // namespace cohort::internal
