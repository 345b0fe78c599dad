#include "cohort/train/bundle/ordered_code.h"

#include <bit>
#include <cstdint>

namespace cohort::internal {

// How many bytes follow, then these bytes, the highest first, without leading zeros.
void append_ordered(std::string& out, uint64_t value) {
  const int bytes = (64 - std::countl_zero(value) + 7) / 8;
  out += static_cast<char>(bytes);
  for (int i = bytes - 1; i >= 0; --i) out += static_cast<char>(value >> (8 * i));
}

// In n bytes, the number of leading ones says n (as in UTF-8), and then come the bits of the two's
// complement; a negative value has all of this inverted, which puts it before the others.
void append_ordered_signed(std::string& out, int64_t value) {
  const uint64_t magnitude = static_cast<uint64_t>(value < 0 ? ~value : value);
  const int bits = 64 - std::countl_zero(magnitude);
  const int length = bits / 7 + 1;  // 7 bits a byte, one of them for the sign
  unsigned char bytes[10];          // the sign, stretched over two bytes, and the number
  bytes[0] = bytes[1] = value < 0 ? 0xff : 0x00;
  for (int i = 0; i < 8; ++i) {
    bytes[2 + i] = static_cast<unsigned char>(static_cast<uint64_t>(value) >> (8 * (7 - i)));
  }
  unsigned char* begin = bytes + 10 - length;
  for (int i = 0; i < length; ++i) begin[i / 8] ^= static_cast<unsigned char>(0x80 >> (i % 8));
  out.append(reinterpret_cast<const char*>(begin), static_cast<size_t>(length));
}

// Zero bytes become 0 ff, ff becomes ff 0, and 0 1 ends the text.
void append_ordered(std::string& out, std::string_view text) {
  for (const char c : text) {
    out += c;
    if (c == '\0') out += '\xff';
    if (c == '\xff') out += '\0';
  }
  out += '\0';
  out += '\1';
}

std::string slice_key(std::string_view name, const train::TensorSlice& slice) {
  std::string key;
  append_ordered(key, uint64_t{0});
  append_ordered(key, name);
  append_ordered(key, static_cast<uint64_t>(slice.start.size()));
  for (size_t d = 0; d < slice.start.size(); ++d) {
    append_ordered_signed(key, slice.start[d]);
    append_ordered_signed(key, slice.length[d]);
  }
  return key;
}

}  // namespace cohort::internal
