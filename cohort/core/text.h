// How names and places are written in messages, and numbers read from text, in one way everywhere.
//
//   quoted("it's")          // 'it\'s'
//   key_path("image")       // ['image']
//   place("['image'][0]")   // ['image'][0];  place("") is "top level"
//   parse_number<int>(" +12 ")   // 12;  of "12a" nothing
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace cohort::internal {

// `text` in quotation marks on one line: the mark, the backslash and control characters escaped.
// An object rather than a function, so that calls with a std::string do not find std::quoted.
struct Quoted {
  std::string operator()(std::string_view text, char mark = '\'') const;
};
inline constexpr Quoted quoted;

// ASCII letters in upper case.
std::string upper(std::string_view text);

// One step of a path into a structure: what the user would write after its name.
std::string key_path(std::string_view key);
std::string index_path(size_t index);
// A path where a sentence needs a noun.
std::string place(const std::string& path);

// A number as it stands in a text file: all of `text`, with or without a sign, perhaps between
// blanks and tabs; nothing where it is none. Whole numbers are decimal and must fit. Of floating
// ones "inf" and "nan" are some; one that is too large is infinite, one too small is 0, as
// TensorFlow reads them. Number: int32_t, int64_t, float, double.
template <class Number>
std::optional<Number> parse_number(std::string_view text);

}  // namespace cohort::internal
