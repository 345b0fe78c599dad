#include "cohort/data/records/text_framing.h"

#include <algorithm>

#include "cohort/core/error.h"

namespace cohort::internal {
namespace {

class LineFraming final : public Framing {
 public:
  Split split(const Input& input, std::vector<std::string_view>& records) const override {
    Split split;
    while (split.consumed < input.bytes.size()) {
      std::string_view line = input.bytes.substr(split.consumed);
      const size_t end = line.find('\n');
      if (end == std::string_view::npos && !input.at_end()) return split;
      split.consumed += end == std::string_view::npos ? line.size() : end + 1;
      ++split.indices;
      line = line.substr(0, end);
      if (end != std::string_view::npos && line.ends_with('\r')) line.remove_suffix(1);
      records.push_back(line);
    }
    return split;
  }
};

class FixedLengthFraming final : public Framing {
 public:
  explicit FixedLengthFraming(const FixedLength& layout) : layout_(layout) {}

  Split split(const Input& input, std::vector<std::string_view>& records) const override {
    const auto& [record_bytes, header_bytes, footer_bytes] = layout_;
    Split split;
    if (input.position.offset < header_bytes) {
      const uint64_t header_left = header_bytes - input.position.offset;
      if (header_left > input.available) {
        input.fail(str("the file ends within its header of ", header_bytes, " bytes"));
      }
      split.consumed = std::min<uint64_t>(header_left, input.bytes.size());
      if (split.consumed < header_left) return split;
    }
    // A record is one only if a footer can still follow it.
    while (true) {
      const uint64_t left = input.bytes.size() - split.consumed;
      if (left >= footer_bytes && left - footer_bytes >= record_bytes) {
        records.push_back(input.bytes.substr(split.consumed, record_bytes));
        split.consumed += record_bytes;
        ++split.indices;
        continue;
      }
      if (!records.empty()) break;
      if (!input.at_end()) {
        split.needed = record_bytes + footer_bytes;
      } else if (left != footer_bytes) {
        input.fail(str("after ", input.position.index, " records of ", record_bytes, " bytes ",
                       left, " bytes are left, where the footer has ", footer_bytes));
      }
      break;  // before the footer: whoever asks again finds the same end
    }
    return split;
  }

 private:
  const FixedLength layout_;
};

}  // namespace

std::shared_ptr<const Framing> make_line_framing() { return std::make_shared<LineFraming>(); }

std::shared_ptr<const Framing> make_fixed_length_framing(const FixedLength& layout) {
  return std::make_shared<FixedLengthFraming>(layout);
}

}  // namespace cohort::internal
