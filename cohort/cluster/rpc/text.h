// Text that came from another task: what of it may be a name, and how it is shown to a person.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace cohort::internal::rpc {

// Whether `text` is UTF-8: shortest forms, no surrogates, nothing above U+10FFFF.
bool is_utf8(std::string_view text);

// `text` for a log or a terminal: control characters except newline and tab, and bytes that are not
// UTF-8, as \x1b. Other text stays as it is.
std::string printable(std::string_view text);

// The first bytes of `text`, `most` at most, cut between characters.
std::string_view head_of(std::string_view text, size_t most);

}  // namespace cohort::internal::rpc
