#include "cohort/cluster/rpc/text.h"

#include <cstdint>

namespace cohort::internal::rpc {
namespace {

bool continues(char byte) { return (static_cast<unsigned char>(byte) & 0xc0) == 0x80; }

// The bytes of the character that `text` begins with; 0 where they are not UTF-8.
size_t character_size(std::string_view text) {
  const auto first = static_cast<unsigned char>(text.front());
  if (first < 0x80) return 1;
  const size_t size = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || text.size() < size) return 0;
  uint32_t code = first & (0x7fu >> size);
  for (size_t i = 1; i < size; ++i) {
    if (!continues(text[i])) return 0;
    code = code << 6 | (static_cast<unsigned char>(text[i]) & 0x3fu);
  }
  const bool shortest = size == 2 || (size == 3 ? code >= 0x800 : code >= 0x10000);
  const bool surrogate = code >= 0xd800 && code <= 0xdfff;
  return shortest && !surrogate && code <= 0x10ffff ? size : 0;
}

// Also the control characters of Latin-1, which some terminals obey.
bool is_control(std::string_view character) {
  const auto first = static_cast<unsigned char>(character.front());
  if (character.size() == 2)
    return first == 0xc2 && static_cast<unsigned char>(character[1]) < 0xa0;
  return (first < 0x20 && first != '\n' && first != '\t') || first == 0x7f;
}

}  // namespace

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const size_t size = character_size(text);
    if (size == 0) return false;
    text.remove_prefix(size);
  }
  return true;
}

std::string printable(std::string_view text) {
  constexpr char kHexDigits[] = "0123456789abcdef";
  std::string shown;
  while (!text.empty()) {
    const size_t size = character_size(text);
    const std::string_view character = text.substr(0, size == 0 ? 1 : size);
    if (size == 0 || is_control(character)) {
      for (const char c : character) {
        const auto byte = static_cast<unsigned char>(c);
        shown += "\\x";
        shown += kHexDigits[byte >> 4];
        shown += kHexDigits[byte & 15];
      }
    } else {
      shown += character;
    }
    text.remove_prefix(character.size());
  }
  return shown;
}

std::string_view head_of(std::string_view text, size_t most) {
  if (text.size() <= most) return text;
  size_t size = most;
  for (int back = 0; back < 3 && size > 0 && continues(text[size]); ++back) --size;
  return text.substr(0, continues(text[size]) ? most : size);
}

}  // namespace cohort::internal::rpc
