// Memory for bulk bytes that arrive, aligned as tensors want theirs. Big blocks are kept when they
// are given back, so that their pages are touched once in a process and not once per message: a
// fresh page costs more than the bytes that are copied into it.
#pragma once

#include <cstddef>
#include <memory>

namespace cohort::internal::rpc {

inline constexpr size_t kBulkAlignment = 64;

// Uninitialized. Throws std::bad_alloc. Thread safety: any thread.
std::shared_ptr<char> bulk_memory(size_t bytes);

}  // namespace cohort::internal::rpc
