// Numbers in text files.
#pragma once

#include <charconv>
#include <string_view>
#include <system_error>

namespace cohort::internal {

// All of `text`, but for blanks around it, as one number that fits; otherwise false, and `number`
// is as it was.
template <class Number>
bool parse_number(std::string_view text, Number& number) {
  constexpr std::string_view kBlanks = " \t";
  const size_t first = text.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) return false;
  text = text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
  if (text[0] == '+' && text.size() > 1 && text[1] != '-') text.remove_prefix(1);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size();
}

}  // namespace cohort::internal
