// Text from another task: checks whether it may be a name, and makes it fit to be shown to a
// person.
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
