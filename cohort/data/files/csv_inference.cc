#include "cohort/data/files/csv_inference.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <string_view>
#include <utility>

#include "cohort/core/error.h"
#include "cohort/core/files/file_system.h"
#include "cohort/core/text.h"
#include "cohort/core/text_stream.h"
#include "cohort/data/files/csv_format.h"
#include "cohort/data/files/record_files.h"
#include "cohort/data/records/csv.h"
#include "cohort/data/records/record_reader.h"

namespace cohort::internal {
namespace {

// The narrowest first.
enum class Type { kInt32, kInt64, kFloat32, kFloat64, kString };

template <class Float>
bool is_float(std::string_view field) {
  const auto value = parse_number<Float>(field);
  // Values beyond the type's, and "nan", are no numbers to TensorFlow here; "-inf" is one.
  return value && *value < std::numeric_limits<Float>::infinity();
}

bool fits(Type type, std::string_view field) {
  switch (type) {
    case Type::kInt32:
      return parse_number<int32_t>(field).has_value();
    case Type::kInt64:
      return parse_number<int64_t>(field).has_value();
    case Type::kFloat32:
      return is_float<float>(field);
    case Type::kFloat64:
      return is_float<double>(field);
    case Type::kString:
      break;
  }
  return true;
}

data::CsvColumn column_of(const std::optional<Type>& type) {
  switch (type.value_or(Type::kString)) {
    case Type::kInt32:
      return data::CsvColumn::int32s(0);
    case Type::kInt64:
      return data::CsvColumn::ints(0);
    case Type::kFloat32:
      return data::CsvColumn::floats(0.0f);
    case Type::kFloat64:
      return data::CsvColumn::doubles(0.0);
    case Type::kString:
      break;
  }
  return data::CsvColumn::strings("");
}

std::unique_ptr<RecordReader> open_csv(const std::string& file, const CsvDialect& dialect,
                                       const data::CsvOptions& options) {
  // The first rows are wanted, or the first alone.
  constexpr size_t kBufferBytes = size_t{16} << 10;
  const RecordFilesOptions files = record_files_options(options.files);
  return open_records(posix_file_system(), file, files.compression, make_csv_framing(dialect),
                      {.buffer_bytes = kBufferBytes, .deadline = files.deadline});
}

std::vector<std::string> header_of(const std::string& file, const data::CsvOptions& options) {
  CsvDialect dialect = csv_dialect(options);
  dialect.skips_header = false;
  const RecordRun run = open_csv(file, dialect, options)->next();
  if (run.records.empty()) {
    throw DataLossError(
        str(quoted(file), " has no line, not even the header that .header = true says it has"));
  }
  CsvFields fields(dialect);
  if (const auto problem = fields.split(run.records.front())) {
    throw InvalidArgumentError(str(quoted(file), ", line 1, which is its header: ", *problem));
  }
  return {fields.fields().begin(), fields.fields().end()};
}

void check_same(const std::string& first_file, const std::vector<std::string>& first,
                const std::string& file, const std::vector<std::string>& names) {
  if (names == first) return;
  const std::string front = str("the header of ", quoted(file), " differs from that of ",
                                quoted(first_file), ", but all files have the same columns: ");
  if (names.size() != first.size()) {
    throw InvalidArgumentError(str(front, "it has ", names.size(), " columns, not ", first.size()));
  }
  const auto [name, other] = std::mismatch(names.begin(), names.end(), first.begin());
  throw InvalidArgumentError(str(front, "column ", name - names.begin() + 1, " is ", quoted(*name),
                                 ", not ", quoted(*other)));
}

// Finds the types of columns, row by row. Thread safety: none.
class Inference {
 public:
  Inference(const data::CsvOptions& options, const CsvInference& wanted)
      : options_(options),
        wanted_(wanted),
        fields_(csv_dialect(options)),
        types_(wanted.fields.size()) {}

  bool is_done() const { return wanted_.num_rows && rows_ >= *wanted_.num_rows; }
  void read(const std::string& file) {
    const auto reader = open_csv(file, csv_dialect(options_), options_);
    for (RecordRun run = reader->next(); !run.records.empty(); run = reader->next()) {
      for (const std::string_view& record : run.records) {
        if (is_done()) return;
        const auto problem = add(record);
        if (problem && !wanted_.ignore_errors) {
          throw InvalidArgumentError(str("inferring the types of columns: ", quoted(file),
                                         ", line ", csv_line(run, &record), ": ", *problem));
        }
      }
    }
  }
  std::vector<data::CsvColumn> columns() const {
    std::vector<data::CsvColumn> columns;
    for (const auto& type : types_) columns.push_back(column_of(type));
    return columns;
  }

 private:
  // What is wrong with the record, or nothing.
  std::optional<std::string> add(std::string_view record) {
    if (auto problem = fields_.split(record)) return problem;
    const auto& found = fields_.fields();
    if (found.size() != wanted_.num_fields) {
      return str("it has ", found.size(), found.size() == 1 ? " field" : " fields", " where ",
                 wanted_.num_fields, " are expected");
    }
    ++rows_;
    for (size_t i = 0; i < types_.size(); ++i) widen(types_[i], found[wanted_.fields[i]]);
    return std::nullopt;
  }
  void widen(std::optional<Type>& type, std::string_view field) const {
    if (field.empty() || field == options_.na_value) return;
    Type wider = type.value_or(Type::kInt32);
    while (!fits(wider, field)) wider = static_cast<Type>(static_cast<int>(wider) + 1);
    type = wider;
  }

  const data::CsvOptions& options_;
  const CsvInference& wanted_;
  CsvFields fields_;
  std::vector<std::optional<Type>> types_;
  int64_t rows_ = 0;
};

}  // namespace

std::vector<std::string> csv_header(const std::vector<std::string>& files,
                                    const data::CsvOptions& options) {
  const std::vector<std::string> first = header_of(files.front(), options);
  for (size_t i = 1; i < files.size(); ++i) {
    check_same(files.front(), first, files[i], header_of(files[i], options));
  }
  return first;
}

std::vector<data::CsvColumn> infer_csv_columns(const std::vector<std::string>& files,
                                               const data::CsvOptions& options,
                                               const CsvInference& wanted) {
  Inference inference(options, wanted);
  for (const std::string& file : files) {
    if (inference.is_done()) break;
    try {
      inference.read(file);
    } catch (const DataLossError&) {
      if (!wanted.ignore_errors) throw;
    }
  }
  return inference.columns();
}

}  // namespace cohort::internal
