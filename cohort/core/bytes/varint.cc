#include "cohort/core/bytes/varint.h"

#include "cohort/core/error.h"

namespace cohort::internal {

void append_varint(std::string& out, uint64_t value) {
  for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
  out += static_cast<char>(value);
}

void append_signed_varint(std::string& out, int64_t value) {
  append_varint(out, static_cast<uint64_t>(value) << 1 ^ static_cast<uint64_t>(value >> 63));
}

uint64_t take_varint(std::string_view& in) {
  uint64_t value = 0;
  size_t taken = 0;
  for (int shift = 0; shift < 64 && taken < in.size(); shift += 7) {
    const auto byte = static_cast<unsigned char>(in[taken++]);
    if (shift == 63 && byte > 1) break;  // would exceed 64 bits
    value |= static_cast<uint64_t>(byte & 0x7f) << shift;
    if ((byte & 0x80) != 0) continue;
    in.remove_prefix(taken);
    return value;
  }
  throw DataLossError("a number that does not end");
}

int64_t take_signed_varint(std::string_view& in) {
  const uint64_t value = take_varint(in);
  return static_cast<int64_t>((value >> 1) ^ (~(value & 1) + 1));
}

}  // namespace cohort::internal
