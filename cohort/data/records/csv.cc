#include "cohort/data/records/csv.h"

#include <algorithm>
#include <cstdint>

#include "cohort/core/error.h"

namespace cohort::internal {
namespace {

constexpr char kMark = '"';
// UTF-8's, which spreadsheets write at the beginning of a file.
constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

struct RecordEnd {
  size_t end;   // of the record
  size_t next;  // the beginning of the one after
};

class CsvFraming final : public Framing {
 public:
  explicit CsvFraming(const CsvDialect& dialect) : dialect_(dialect) {}

  Split split(const Input& input, std::vector<std::string_view>& records) const override {
    Split split;
    const bool at_start = input.position.offset == 0;
    if (at_start && begins_like_mark(input.bytes) && !input.at_end()) return split;
    size_t begin = at_start && input.bytes.starts_with(kByteOrderMark) ? kByteOrderMark.size() : 0;
    if (at_start && dialect_.skips_header && begin == input.bytes.size() && input.at_end()) {
      input.fail("it has no line, not even the header that .header = true says it begins with");
    }
    while (begin < input.bytes.size()) {
      const auto found = find_end(input.bytes, begin, input.at_end());
      if (!found) return split;
      const std::string_view record = input.bytes.substr(begin, found->end - begin);
      const bool header = dialect_.skips_header && at_start && split.consumed == 0;
      split.consumed = begin = found->next;
      split.indices += 1 + static_cast<uint64_t>(std::count(record.begin(), record.end(), '\n'));
      if (header) return split;  // so that lines are counted from the first record on
      records.push_back(record);
    }
    split.consumed = begin;
    return split;
  }

 private:
  // Whether more bytes may make a mark of the order of bytes of these.
  static bool begins_like_mark(std::string_view bytes) {
    return bytes.size() < kByteOrderMark.size() && kByteOrderMark.starts_with(bytes);
  }
  // Nothing where more bytes are needed to tell.
  std::optional<RecordEnd> find_end(std::string_view bytes, size_t begin, bool at_end) const {
    bool field_begins = true;
    for (size_t i = begin; i < bytes.size(); ++i) {
      const char c = bytes[i];
      if (c == '\n') return RecordEnd{i, i + 1};
      if (c == '\r') {
        if (i + 1 == bytes.size() && !at_end) return std::nullopt;
        const bool pair = i + 1 < bytes.size() && bytes[i + 1] == '\n';
        return RecordEnd{i, i + (pair ? 2 : 1)};
      }
      if (c == kMark && field_begins && dialect_.quotes) {
        i = find_closing_mark(bytes, i + 1);
        if (i == std::string_view::npos) break;
      }
      field_begins = c == dialect_.delimiter;
    }
    if (!at_end) return std::nullopt;
    return RecordEnd{bytes.size(), bytes.size()};
  }

  static size_t find_closing_mark(std::string_view bytes, size_t begin) {
    size_t mark = bytes.find(kMark, begin);
    while (mark != std::string_view::npos && mark + 1 < bytes.size() && bytes[mark + 1] == kMark) {
      mark = bytes.find(kMark, mark + 2);
    }
    return mark;
  }

  const CsvDialect dialect_;
};

}  // namespace

std::shared_ptr<const Framing> make_csv_framing(const CsvDialect& dialect) {
  return std::make_shared<CsvFraming>(dialect);
}

bool CsvFields::take_quoted(std::string_view& left) {
  left.remove_prefix(1);
  const size_t first = left.find(kMark);
  if (first == std::string_view::npos) return false;
  if (first + 1 == left.size() || left[first + 1] != kMark) {
    fields_.push_back(left.substr(0, first));
    left.remove_prefix(first + 1);
    return true;
  }
  const size_t begin = unescaped_.size();
  size_t mark = first;
  while (mark != std::string_view::npos) {
    unescaped_ += left.substr(0, mark);
    left.remove_prefix(mark + 1);
    if (left.empty() || left.front() != kMark) break;
    unescaped_ += kMark;
    left.remove_prefix(1);
    mark = left.find(kMark);
  }
  fields_.push_back(std::string_view(unescaped_).substr(begin));
  return mark != std::string_view::npos;
}

std::optional<std::string> CsvFields::split(std::string_view record) {
  fields_.clear();
  unescaped_.clear();
  unescaped_.reserve(record.size());  // its views stay valid
  std::string_view left = record;
  while (true) {
    const auto column = [&] { return fields_.size() + 1; };
    if (dialect_.quotes && left.starts_with(kMark)) {
      if (!take_quoted(left)) {
        return str("the quotation mark at the beginning of field ", column(), " is never closed");
      }
      if (!left.empty() && left.front() != dialect_.delimiter) {
        return str("field ", fields_.size(), " goes on after its closing quotation mark");
      }
    } else {
      const std::string_view field = left.substr(0, left.find(dialect_.delimiter));
      if (dialect_.quotes && field.find(kMark) != std::string_view::npos) {
        return str("field ", column(), " has a quotation mark inside, but does not begin with one");
      }
      fields_.push_back(field);
      left.remove_prefix(field.size());
    }
    if (left.empty()) return std::nullopt;
    left.remove_prefix(1);  // the delimiter, after which there is a field, perhaps an empty one
  }
}

}  // namespace cohort::internal
