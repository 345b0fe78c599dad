// CRC-32C (Castagnoli), and the masked form in which files hold it.
//
// Masking (rotate by 15 bits, add a constant) is that of leveldb's and TensorFlow's formats: the
// checksum of bytes which contain their own checksum would be a poor one.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace cohort::internal {

// The checksum of `length` bytes, continued from `crc`, the checksum of the bytes before them.
uint32_t crc32c(const void* data, size_t length, uint32_t crc = 0);
inline uint32_t crc32c(std::string_view bytes, uint32_t crc = 0) {
  return crc32c(bytes.data(), bytes.size(), crc);
}

// Writes to `crcs` the checksum of each number's eight bytes.
void crc32c_each(std::span<const uint64_t> numbers, uint32_t* crcs);

// Writes to `crcs` the checksum of each buffer. Short buffers are processed several at a time: the
// processor can begin the instruction in every cycle, but takes three cycles to give its result.
void crc32c_each(std::span<const std::string_view> buffers, uint32_t* crcs);

inline constexpr uint32_t kCrcMaskDelta = 0xa282ead8u;
constexpr uint32_t mask_crc(uint32_t crc) { return std::rotr(crc, 15) + kCrcMaskDelta; }
constexpr uint32_t unmask_crc(uint32_t masked) { return std::rotl(masked - kCrcMaskDelta, 15); }

}  // namespace cohort::internal
