// Numbers in one to ten bytes, small ones in few: LEB128, as protocol buffers and leveldb have it.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace cohort::internal {

void append_varint(std::string& out, uint64_t value);
// How many bytes that appends.
constexpr size_t varint_bytes(uint64_t value) {
  return (static_cast<size_t>(std::bit_width(value | 1)) + 6) / 7;
}
// Signed ones by zigzag: 0, -1, 1, -2, ...
void append_signed_varint(std::string& out, int64_t value);

// Takes one off the front of `in`. Errors: DataLoss (it does not end, or exceeds 64 bits).
uint64_t take_varint(std::string_view& in);
int64_t take_signed_varint(std::string_view& in);

}  // namespace cohort::internal
