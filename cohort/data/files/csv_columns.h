// Columns of CSV files: what types they have, and how files are read.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "cohort/core/export.h"
#include "cohort/core/structure/spec.h"
#include "cohort/data/files/record_dataset_options.h"

namespace cohort::data {

// The type of a column, and the value of an empty field; without a default, the field is required.
// A value type. A value stands for the column that has it as default, as in TensorFlow's
// record_defaults, and a dtype for one without: {0., int32, ""}.
class COHORT_API CsvColumn {
 public:
  using Default = std::variant<int32_t, int64_t, float, double, std::string>;

  CsvColumn(int default_value) : CsvColumn(int32s(default_value)) {}
  CsvColumn(int64_t default_value) : CsvColumn(ints(default_value)) {}
  CsvColumn(float default_value) : CsvColumn(floats(default_value)) {}
  // float32, as a literal is everywhere; doubles() makes a column of float64.
  CsvColumn(double default_value) : CsvColumn(floats(static_cast<float>(default_value))) {}
  CsvColumn(std::string default_value) : CsvColumn(strings(std::move(default_value))) {}
  CsvColumn(const char* default_value) : CsvColumn(strings(default_value)) {}
  // Errors: InvalidArgument (neither int32, int64, float32 nor float64).
  CsvColumn(DType dtype);

  static CsvColumn int32s(std::optional<int32_t> default_value = {});
  static CsvColumn ints(std::optional<int64_t> default_value = {});  // int64
  static CsvColumn floats(std::optional<float> default_value = {});  // float32
  static CsvColumn doubles(std::optional<double> default_value = {});
  static CsvColumn strings(std::optional<std::string> default_value = {});

  // The spec of a field: a scalar.
  const TensorSpec& spec() const { return spec_; }
  const std::optional<Default>& default_value() const { return default_; }

 private:
  CsvColumn(TensorSpec spec, std::optional<Default> default_value)
      : spec_(std::move(spec)), default_(std::move(default_value)) {}

  TensorSpec spec_;
  std::optional<Default> default_;
};

struct CsvOptions {
  bool header = false;  // the first record of each file is a header, not data
  char field_delim = ',';
  bool use_quote_delim = true;  // false: a quotation mark is a character like any other
  std::string na_value = "";    // this text counts as an empty field, too
  // The indices of the wanted columns, ascending, one for each of `columns`; records may then have
  // further columns. Default: all.
  std::vector<int64_t> select_cols = {};
  // The indices of the columns to leave out, ascending: `columns` are the others. Not with
  // select_cols.
  std::vector<int64_t> exclude_cols = {};
  // Elements are dicts with these keys. Default: tuples.
  std::vector<std::string> column_names = {};
  RecordDatasetOptions files = {};
};

}  // namespace cohort::data
