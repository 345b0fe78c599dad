#include "cohort/core/text.h"

namespace cohort::internal {

std::string Quoted::operator()(std::string_view text, char mark) const {
  constexpr char kHexDigits[] = "0123456789abcdef";
  std::string result(1, mark);
  for (char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == mark || c == '\\') {
      result += '\\';
      result += c;
    } else if (c == '\n') {
      result += "\\n";
    } else if (c == '\t') {
      result += "\\t";
    } else if (byte < 0x20 || byte == 0x7f) {
      result += "\\x";
      result += kHexDigits[byte >> 4];
      result += kHexDigits[byte & 15];
    } else {
      result += c;
    }
  }
  return result + mark;
}

std::string upper(std::string_view text) {
  std::string result(text);
  for (char& c : result) {
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  }
  return result;
}

std::string key_path(std::string_view key) { return "[" + quoted(key) + "]"; }

std::string index_path(size_t index) { return "[" + std::to_string(index) + "]"; }

std::string place(const std::string& path) { return path.empty() ? "top level" : path; }

}  // namespace cohort::internal
