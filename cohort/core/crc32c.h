// CRC-32C (Castagnoli), and the masked form in which files hold it.
//
// Masking (rotate by 15 bits, add a constant) is that of leveldb's and TensorFlow's formats: the
// checksum of bytes which contain their own checksum would be a poor one.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace cohort::internal {

// Of `length` bytes, continuing from the checksum `crc` of what came before.
uint32_t crc32c(const void* data, size_t length, uint32_t crc = 0);
inline uint32_t crc32c(std::string_view bytes, uint32_t crc = 0) {
  return crc32c(bytes.data(), bytes.size(), crc);
}

inline constexpr uint32_t kCrcMaskDelta = 0xa282ead8u;
constexpr uint32_t mask_crc(uint32_t crc) { return std::rotr(crc, 15) + kCrcMaskDelta; }
constexpr uint32_t unmask_crc(uint32_t masked) { return std::rotl(masked - kCrcMaskDelta, 15); }

}  // namespace cohort::internal
