// CSV as RFC 4180 has it: records end with "\n" or "\r\n" (or "\r"), fields are divided by a
// delimiter, and one that begins with a quotation mark goes on to the next single one: in it
// delimiters and line ends mean nothing, and two marks stand for one. A byte order mark of UTF-8 at
// the beginning of a file is no part of it.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cohort/data/records/record_reader.h"

namespace cohort::internal {

struct CsvDialect {
  char delimiter = ',';
  bool quotes = true;         // false: a quotation mark is a character like any other
  bool skips_header = false;  // the first record of a file is none
};

// Whole records, still with their quotation marks, without their ends. Positions count lines. A
// field whose quotation mark is never closed makes the rest of the file one record, or an error
// where that has more than RecordReaderOptions::max_record_bytes. A file that has no line, though
// it should have a header, is an error.
std::shared_ptr<const Framing> make_csv_framing(const CsvDialect& dialect);

// The fields of a record, without quotation marks. Reused from record to record.
// Thread safety: none.
class CsvFields {
 public:
  explicit CsvFields(const CsvDialect& dialect) : dialect_(dialect) {}

  // What is wrong with the record, or nothing. The fields live as long as the record and until the
  // next call.
  std::optional<std::string> split(std::string_view record);
  const std::vector<std::string_view>& fields() const { return fields_; }

 private:
  // Takes a quoted field off the front; false where its quotation mark is never closed.
  bool take_quoted(std::string_view& left);

  const CsvDialect dialect_;
  std::vector<std::string_view> fields_;
  std::string unescaped_;  // fields in which marks are doubled
};

}  // namespace cohort::internal
