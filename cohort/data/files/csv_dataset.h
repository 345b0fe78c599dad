// The records of CSV files, with a type for each column.
//
//   data::CsvDataset dataset("train.csv",
//                            {data::CsvColumn::floats(0.0f), data::CsvColumn::ints()},
//                            {.header = true, .column_names = {"age", "label"}});
//   for (const Structure& row : dataset.batch(32)) train(row["age"], row["label"]);
#pragma once

#include <initializer_list>
#include <string>
#include <vector>

#include "cohort/core/export.h"
#include "cohort/data/dataset.h"
#include "cohort/data/files/csv_columns.h"
#include "cohort/data/paths.h"

namespace cohort::data {

// Elements: tuples (or dicts) of one scalar for each of `columns`. Numbers may stand between
// spaces. RFC 4180: fields between quotation marks may hold delimiters, line ends and marks twice.
//
// Errors: InvalidArgument (no columns; options of other lengths, or that exclude each other; a
// delimiter that is a quotation mark or line end). While reading: as TFRecordDataset's; DataLoss
// (.header, but a file without any line); InvalidArgument (a required field is empty, a number that
// is none, too many or few fields, a misplaced quotation mark: names file, line and column); the
// next element is then the next record. Resuming: as TFRecordDataset's.
class COHORT_API CsvDataset : public Dataset {
 public:
  CsvDataset(const Paths& files, std::vector<CsvColumn> columns, const CsvOptions& options = {});
  CsvDataset(std::initializer_list<std::string> files, std::vector<CsvColumn> columns,
             const CsvOptions& options = {});
  CsvDataset(const Dataset& files, std::vector<CsvColumn> columns, const CsvOptions& options = {});
};

}  // namespace cohort::data
