#include "cohort/core/crc32c.h"

#include <isa-l.h>

#include <algorithm>

namespace cohort::internal {

uint32_t crc32c(const void* data, size_t length, uint32_t crc) {
  constexpr size_t kMost = size_t{1} << 30;  // the library counts in int
  auto* bytes = const_cast<unsigned char*>(static_cast<const unsigned char*>(data));
  uint32_t state = ~crc;
  while (length > 0) {
    const size_t block = std::min(length, kMost);
    state = crc32_iscsi(bytes, static_cast<int>(block), state);
    bytes += block;
    length -= block;
  }
  return ~state;
}

}  // namespace cohort::internal
