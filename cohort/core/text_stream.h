// A stream into a string whose text is the same under every locale that the program has set:
// a point before decimals, nothing between thousands.
//
//   TextStream out;
//   out << 1000 << ' ' << 2.5;
//   std::move(out).str();   // "1000 2.5", also after std::locale::global(std::locale("de_DE"))
#pragma once

#include <locale>
#include <sstream>

namespace cohort::internal {

class TextStream : public std::ostringstream {
 public:
  TextStream() { imbue(std::locale::classic()); }
};

}  // namespace cohort::internal
