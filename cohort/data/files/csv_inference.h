// What files of CSV say about their columns: names, by their headers, and types, by their rows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cohort/data/files/csv_columns.h"

namespace cohort::internal {

// The names in the headers of the files, the same in all.
// Errors: InvalidArgument (a header that differs from the first file's, or that is no record),
// DataLoss (a file without any line), those of reading; all name the file.
std::vector<std::string> csv_header(const std::vector<std::string>& files,
                                    const data::CsvOptions& options);

struct CsvInference {
  size_t num_fields;                // of each record
  std::vector<size_t> fields;       // of the wanted columns
  std::optional<int64_t> num_rows;  // that are looked at, over all files; none: all rows
  bool ignore_errors;               // passes over records that do not fit
};

// The types that TensorFlow infers, too: for each column the first of int32, int64, float32,
// float64 and string that all values fit; string where there are none. A missing value is 0 or "".
// Errors: InvalidArgument (a record that does not fit: file and line), those of reading.
std::vector<data::CsvColumn> infer_csv_columns(const std::vector<std::string>& files,
                                               const data::CsvOptions& options,
                                               const CsvInference& wanted);

}  // namespace cohort::internal
