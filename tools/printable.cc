#include "tools/printable.h"

#include <cstdint>

#include "cohort/core/text.h"

namespace cohort::tools {
namespace {

// Bytes of the character that `text` begins with; 0: it begins with no UTF-8.
size_t character_bytes(std::string_view text, uint32_t& code) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  const size_t length = lead < 0x80   ? 1
                        : lead < 0xc2 ? 0
                        : lead < 0xe0 ? 2
                        : lead < 0xf0 ? 3
                        : lead < 0xf5 ? 4
                                      : 0;
  if (length == 0 || length > text.size()) return 0;
  constexpr unsigned char kLeadBits[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
  code = lead & kLeadBits[length];
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
    code = code << 6 | (byte(i) & 0x3f);
  }
  constexpr uint32_t kSmallest[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool surrogate = code >= 0xd800 && code <= 0xdfff;
  return code < kSmallest[length] || code > 0x10ffff || surrogate ? 0 : length;
}

bool harmless(uint32_t code) {
  if (code < 0x20 || (code >= 0x7f && code < 0xa0)) return false;
  // Line and paragraph separators, and what embeds or overrides the direction of text.
  return !(code == 0x061c || (code >= 0x200e && code <= 0x200f) ||
           (code >= 0x2028 && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069));
}

}  // namespace

std::string printable(std::string_view text) {
  constexpr char kHexDigits[] = "0123456789abcdef";
  std::string result;
  while (!text.empty()) {
    uint32_t code = 0;
    const size_t length = character_bytes(text, code);
    if (length > 0 && harmless(code)) {
      result += text.substr(0, length);
      text.remove_prefix(length);
      continue;
    }
    for (size_t i = 0; i < (length == 0 ? 1 : length); ++i) {
      const auto byte = static_cast<unsigned char>(text[i]);
      result += {'\\', 'x', kHexDigits[byte >> 4], kHexDigits[byte & 15]};
    }
    text.remove_prefix(length == 0 ? 1 : length);
  }
  return result;
}

std::string printable(std::string_view text, size_t most_bytes) {
  if (text.size() <= most_bytes) return printable(text);
  return printable(text.substr(0, most_bytes)) + "... (" + counted(text.size(), "byte") + ")";
}

std::string counted(uint64_t count, std::string_view noun) {
  return internal::decimal_digits(count) + " " + std::string(noun) + (count == 1 ? "" : "s");
}

}  // namespace cohort::tools
