// What the records of CSV files become: CsvDataset's elements, and make_csv_dataset's.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cohort/data/files/csv_columns.h"
#include "cohort/data/files/record_format.h"
#include "cohort/data/graph/node.h"
#include "cohort/data/records/csv.h"

namespace cohort::internal {

struct CsvFormatOptions {
  data::CsvOptions csv;
  // Elements are (the columns, the column of this name), where it is no column of the former.
  std::optional<std::string> label_name = {};
  // So many rows said what types the columns have; -1: all. For errors.
  std::optional<int64_t> rows_of_inference = {};
};

CsvDialect csv_dialect(const data::CsvOptions& options);
std::string csv_type_name(const data::CsvColumn& column);
// The line on which a record of the run begins, counted from 1.
uint64_t csv_line(const RecordRun& run, const std::string_view* record);

// Errors: InvalidArgument (CsvDataset's).
DataNodePtr make_csv(DataNodePtr names, std::vector<data::CsvColumn> columns,
                     CsvFormatOptions options);

}  // namespace cohort::internal
