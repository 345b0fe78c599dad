// Any bytes are lines: those that lie between the newlines, without a carriage return before one.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cohort/data/records/text_framing.h"
#include "tests/fuzz/record_check.h"

namespace {

std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const size_t newline = text.find('\n');
    const bool ended = newline != std::string_view::npos;
    std::string_view line = text.substr(0, newline);
    text.remove_prefix(line.size() + (ended ? 1 : 0));
    if (ended && line.ends_with('\r')) line.remove_suffix(1);
    lines.emplace_back(line);
  }
  return lines;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace cohort;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const auto most_memory = static_cast<int64_t>(size) * 64 + (64 << 10);  // a view for each byte
  const fuzz::RecordFile file = fuzz::check_records(bytes, internal::Compression::kNone,
                                                    internal::make_line_framing(), most_memory);
  fuzz::require_of_records(!file.damaged, "no bytes are damaged lines");
  fuzz::require_of_records(file.records == lines_of(bytes), "the lines between the newlines");
  fuzz::require_of_records(file.positions.back().index == file.records.size(), "lines are counted");
  return 0;
}
