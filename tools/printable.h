// Names and values from files, as they may be written to a terminal.
//
//   std::cout << printable(key);    // a key of "\x1b[31m" does not turn the terminal red
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "cohort/core/text.h"

namespace cohort::tools {

// On one line: control characters, those that turn the direction of text around, and bytes that are
// no UTF-8 become \x1b and the like. All else, the backslash too, stays as it is.
std::string printable(std::string_view text);
// The same, cut where it is longer than `most_bytes`.
std::string printable(std::string_view text, size_t most_bytes);

// "[2, 3]".
template <class Shape>
std::string shape_text(const Shape& shape) {
  std::string text = "[";
  for (const auto size : shape)
    text += (text.size() > 1 ? ", " : "") + internal::decimal_digits(size);
  return text + "]";
}

// "1 tensor", "2 tensors".
std::string counted(uint64_t count, std::string_view noun);

}  // namespace cohort::tools
