// Memory that O_DIRECT takes: a buffer that begins at a page. The big ones are kept when they are
// given back, so that their pages are touched once in a process and not once in a file.
#pragma once

#include <cstddef>
#include <memory>

namespace cohort::internal {

// O_DIRECT needs addresses, offsets and lengths that are multiples of this: the largest logical
// block that disks have.
inline constexpr size_t kDirectAlignment = 4096;
inline constexpr size_t kBigBufferBytes = size_t{8} << 20;

struct GiveBackBuffer {
  size_t bytes = 0;
  void operator()(char* buffer) const;
};
using AlignedBuffer = std::unique_ptr<char[], GiveBackBuffer>;

// A buffer of kBigBufferBytes. At most two of them are kept when they are given back.
// Thread safety: any thread.
AlignedBuffer big_buffer();
// A buffer of `bytes`, rounded up to the alignment.
AlignedBuffer small_buffer(size_t bytes);

}  // namespace cohort::internal
