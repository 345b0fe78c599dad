#include "cohort/cluster/config_error.h"

#include <algorithm>

#include "cohort/core/error.h"
#include "cohort/core/text.h"

namespace cohort::internal {
namespace {

constexpr size_t kMostQuoted = 80;

bool is_plain(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '-';
}

}  // namespace

std::string quoted_start(std::string_view text) {
  if (text.size() <= kMostQuoted) return quoted(text);
  size_t end = kMostQuoted;
  // Not within a character of UTF-8.
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  return quoted(text.substr(0, end)) + "...";
}

std::string json_member(std::string_view key) {
  const bool plain =
      !key.empty() && key.size() <= kMostQuoted && std::ranges::all_of(key, is_plain);
  return plain ? "." + std::string(key) : "[" + quoted_start(key) + "]";
}

std::string json_element(int index) { return index_path(static_cast<size_t>(index)); }

void throw_config_error(std::string_view source, std::string_view path, std::string_view problem) {
  throw InvalidArgumentError(str(source, ": ", path, ": ", problem));
}

}  // namespace cohort::internal
