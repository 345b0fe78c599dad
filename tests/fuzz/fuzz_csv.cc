// Any bytes are CSV records: each is split into fields, or refused with a reason; and fields that
// are written again with quotation marks are the fields that were read.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "cohort/core/text.h"
#include "cohort/data/records/csv.h"
#include "tests/fuzz/record_check.h"

namespace {

using cohort::fuzz::require_of_records;
using cohort::internal::CsvDialect;
using cohort::internal::CsvFields;

std::string written(const CsvFields& fields, char delimiter) {
  std::string record;
  for (const std::string_view field : fields.fields()) {
    if (field.data() != fields.fields().front().data() || !record.empty()) record += delimiter;
    record += '"';
    for (const char c : field) record += c == '"' ? "\"\"" : std::string(1, c);
    record += '"';
  }
  return record;
}

void check_fields(std::string_view record, const CsvDialect& dialect) {
  CsvFields fields(dialect);
  if (const auto problem = fields.split(record)) {
    require_of_records(!problem->empty(), "a reason");
    return;
  }
  require_of_records(!fields.fields().empty(), "at least one field");
  size_t bytes = fields.fields().size() - 1;
  for (const std::string_view field : fields.fields()) {
    bytes += field.size();
    cohort::internal::parse_number<int32_t>(field);
    cohort::internal::parse_number<int64_t>(field);
    cohort::internal::parse_number<float>(field);
    cohort::internal::parse_number<double>(field);
  }
  require_of_records(bytes <= record.size(), "no more bytes than the record has");
  if (!dialect.quotes) return;
  const std::string again = written(fields, dialect.delimiter);
  CsvFields others(dialect);
  require_of_records(!others.split(again) && others.fields() == fields.fields(),
                     "the same fields when they are written again");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace cohort;
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  const CsvDialect dialect = {.delimiter = data[0] & 1 ? '\t' : ',',
                              .quotes = (data[0] & 2) == 0,
                              .skips_header = (data[0] & 4) != 0};
  const auto most_memory = static_cast<int64_t>(size) * 64 + (64 << 10);  // a view for each byte
  const fuzz::RecordFile file = fuzz::check_records(
      bytes, internal::Compression::kNone, internal::make_csv_framing(dialect), most_memory);
  require_of_records(!file.damaged, "no bytes are damaged CSV");
  for (const std::string& record : file.records) check_fields(record, dialect);
  return 0;
}
