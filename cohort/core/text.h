// How names and places are written in messages, and numbers read from text, in one way everywhere.
//
//   quoted("it's")          // 'it\'s'
//   key_path("image")       // ['image']
//   place("['image'][0]")   // ['image'][0];  place("") is "top level"
//   parse_number<int>(" +12 ")   // 12;  of "12a" nothing
//   fixed_digits(2.5, 2)         // "2.50"
//
// No locale that the program has set changes what any of these give: files, names and messages that
// one program makes are read by another.
#pragma once

#include <algorithm>
#include <charconv>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace cohort::internal {

// `text` in quotation marks on one line: the mark, the backslash and control characters escaped.
// An object rather than a function, so that calls with a std::string do not find std::quoted.
struct Quoted {
  std::string operator()(std::string_view text, char mark = '\'') const;
};
inline constexpr Quoted quoted;

// ASCII letters and digits.
constexpr bool is_upper(char c) { return c >= 'A' && c <= 'Z'; }
constexpr bool is_lower(char c) { return c >= 'a' && c <= 'z'; }
constexpr bool is_letter(char c) { return is_upper(c) || is_lower(c); }
constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }
constexpr char to_upper(char c) { return is_lower(c) ? static_cast<char>(c - 'a' + 'A') : c; }
constexpr char to_lower(char c) { return is_upper(c) ? static_cast<char>(c - 'A' + 'a') : c; }

// ASCII letters in upper case, and in lower case.
std::string upper(std::string_view text);
std::string lower(std::string_view text);

// The parts of `text` between blanks, tabs and newlines, within `text`. Inline, as errno_text and
// decimal_digits are: cohort::testing needs them, and the shared library does not export them.
inline std::vector<std::string_view> split_words(std::string_view text) {
  constexpr std::string_view kBetween = " \t\n";
  std::vector<std::string_view> words;
  for (size_t end = 0;;) {
    const size_t begin = text.find_first_not_of(kBetween, end);
    if (begin == std::string_view::npos) return words;
    end = std::min(text.find_first_of(kBetween, begin), text.size());
    words.push_back(text.substr(begin, end - begin));
  }
}

// One step of a path into a structure: what the user would write after its name.
std::string key_path(std::string_view key);
std::string index_path(size_t index);
// A path where a sentence needs a noun.
std::string place(const std::string& path);

// A number with so many digits after the point, as printf's %.2f and %.2e write it in the C locale;
// in general_digits so many digits in all, as %.6g does. "inf", "-inf" and "nan" where it is one.
std::string fixed_digits(double value, int decimals);
std::string scientific_digits(double value, int decimals);
std::string general_digits(double value, int digits);

// A whole number; with_zeros and hex_digits put zeros before it up to `width` characters, as %05d
// and %08x do. str() writes the same, and takes longer.
template <std::integral Whole>
std::string decimal_digits(Whole value) {
  char digits[24];
  return {digits, std::to_chars(digits, digits + sizeof digits, value).ptr};
}
std::string with_zeros(int64_t value, size_t width);
std::string hex_digits(uint64_t value, size_t width);

// The system's text for an errno, in English: "No such file or directory".
inline std::string_view errno_text(int error_number) {
  const char* const text = ::strerrordesc_np(error_number);  // strerror would translate it
  return text != nullptr ? text : "unknown error";
}

// A number as it stands in a text file: all of `text`, with or without a sign, perhaps between
// blanks and tabs; nothing where it is none. Whole numbers are decimal and must fit. Of floating
// ones "inf" and "nan" are some; one that is too large is infinite, one too small is 0, as
// TensorFlow reads them. Number: int32_t, int64_t, float, double.
template <class Number>
std::optional<Number> parse_number(std::string_view text);

}  // namespace cohort::internal
