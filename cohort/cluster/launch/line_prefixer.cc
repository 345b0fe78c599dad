#include "cohort/cluster/launch/line_prefixer.h"

#include <algorithm>

namespace cohort::internal {
namespace {

constexpr size_t kLongestLine = 64 << 10;

}  // namespace

std::string LinePrefixer::add(std::string_view bytes) {
  std::string out;
  while (!bytes.empty()) {
    const size_t end = bytes.find('\n');
    const size_t count = std::min({end, bytes.size(), kLongestLine - line_.size()});
    line_ += bytes.substr(0, count);
    bytes.remove_prefix(count);
    const bool ends = !bytes.empty() && bytes.front() == '\n';
    if (ends) bytes.remove_prefix(1);
    // If a line has reached the greatest length, only the next byte tells whether the line must be
    // cut.
    if (ends || (line_.size() == kLongestLine && !bytes.empty())) {
      out += prefix_;
      out += line_;
      out += '\n';
      line_.clear();
    }
  }
  return out;
}

std::string LinePrefixer::finish() {
  if (line_.empty()) return "";
  std::string out = prefix_ + line_ + '\n';
  line_.clear();
  return out;
}

}  // namespace cohort::internal
