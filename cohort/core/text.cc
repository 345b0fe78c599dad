#include "cohort/core/text.h"

#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <system_error>
#include <type_traits>

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

template <class Number>
std::optional<Number> parse_number(std::string_view text) {
  constexpr std::string_view kBlanks = " \t";
  const size_t begin = text.find_first_not_of(kBlanks);
  if (begin == std::string_view::npos) return std::nullopt;
  text = text.substr(begin, text.find_last_not_of(kBlanks) + 1 - begin);
  // from_chars knows no plus; what follows one has no sign of its own.
  if (text[0] == '+' && !text.substr(1).starts_with('-')) text.remove_prefix(1);
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (end != text.data() + text.size()) return std::nullopt;
  if constexpr (std::is_floating_point_v<Number>) {
    if (error == std::errc::result_out_of_range) {
      const std::string digits(text);
      return std::is_same_v<Number, float>
                 ? std::strtof(digits.c_str(), nullptr)
                 : static_cast<Number>(std::strtod(digits.c_str(), nullptr));
    }
  }
  if (error != std::errc()) return std::nullopt;
  return value;
}

template std::optional<int32_t> parse_number(std::string_view text);
template std::optional<int64_t> parse_number(std::string_view text);
template std::optional<float> parse_number(std::string_view text);
template std::optional<double> parse_number(std::string_view text);

}  // namespace cohort::internal
