#include "cohort/core/text.h"

#include <algorithm>
#include <charconv>
#include <limits>
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
  for (char& c : result) c = to_upper(c);
  return result;
}

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result) c = to_lower(c);
  return result;
}

namespace {

std::string digits_of(double value, std::chars_format format, int precision) {
  // The largest double has 309 digits before its point; a sign and an exponent are shorter.
  constexpr size_t kMostBefore = 320;
  std::string text(kMostBefore + static_cast<size_t>(std::max(precision, 0)), '\0');
  const auto end = std::to_chars(text.data(), text.data() + text.size(), value, format, precision);
  text.resize(static_cast<size_t>(end.ptr - text.data()));
  return text;
}

}  // namespace

std::string fixed_digits(double value, int decimals) {
  return digits_of(value, std::chars_format::fixed, decimals);
}

std::string scientific_digits(double value, int decimals) {
  return digits_of(value, std::chars_format::scientific, decimals);
}

std::string general_digits(double value, int digits) {
  return digits_of(value, std::chars_format::general, digits);
}

std::string with_zeros(int64_t value, size_t width) {
  std::string text = decimal_digits(value);
  if (text.size() < width) text.insert(value < 0 ? 1 : 0, width - text.size(), '0');
  return text;
}

std::string hex_digits(uint64_t value, size_t width) {
  char digits[16];
  const auto end = std::to_chars(digits, digits + sizeof digits, value, 16);
  std::string text(digits, end.ptr);
  if (text.size() < width) text.insert(0, width - text.size(), '0');
  return text;
}

std::string key_path(std::string_view key) { return "[" + quoted(key) + "]"; }

std::string index_path(size_t index) { return "[" + decimal_digits(index) + "]"; }

std::string place(const std::string& path) { return path.empty() ? "top level" : path; }

namespace {

// The value of a number that from_chars refused because of its size: infinite, or 0 with its sign.
template <class Float>
Float beyond_range(std::string_view text) {
  const bool negative = text.starts_with('-');
  const size_t exponent_mark = std::min(text.find_first_of("eE"), text.size());
  const std::string_view mantissa = text.substr(0, exponent_mark);
  // A number out of range has a digit that is not 0. Digits before the point count up from it.
  const size_t point = std::min(mantissa.find('.'), mantissa.size());
  const size_t first = mantissa.find_first_of("123456789");
  const auto places = static_cast<int64_t>(point) - static_cast<int64_t>(first);
  int64_t exponent = 0;
  std::string_view written = text.substr(std::min(exponent_mark + 1, text.size()));
  if (written.starts_with('+')) written.remove_prefix(1);
  const auto read = std::from_chars(written.data(), written.data() + written.size(), exponent);
  // An exponent beyond int64 outweighs all the digits that memory holds.
  const bool is_large =
      read.ec == std::errc::result_out_of_range ? !written.starts_with('-') : exponent > -places;
  const Float size = is_large ? std::numeric_limits<Float>::infinity() : Float(0);
  return negative ? -size : size;
}

}  // namespace

template <class Number>
std::optional<Number> parse_number(std::string_view text) {
  constexpr std::string_view kBlanks = " \t";
  const size_t begin = text.find_first_not_of(kBlanks);
  if (begin == std::string_view::npos) return std::nullopt;
  text = text.substr(begin, text.find_last_not_of(kBlanks) + 1 - begin);
  // from_chars does not accept a plus sign. The number after the plus must have no sign of its own.
  if (text[0] == '+' && !text.substr(1).starts_with('-')) text.remove_prefix(1);
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (end != text.data() + text.size()) return std::nullopt;
  if constexpr (std::is_floating_point_v<Number>) {
    if (error == std::errc::result_out_of_range) return beyond_range<Number>(text);
  }
  if (error != std::errc()) return std::nullopt;
  return value;
}

template std::optional<int32_t> parse_number(std::string_view text);
template std::optional<int64_t> parse_number(std::string_view text);
template std::optional<float> parse_number(std::string_view text);
template std::optional<double> parse_number(std::string_view text);

}  // namespace cohort::internal
