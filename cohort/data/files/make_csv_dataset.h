// Batches of the columns of CSV files, whose names and types the files themselves say.
//
//   auto batches = data::experimental::make_csv_dataset(
//       "train-*.csv", 32, {.label_name = "survived", .num_epochs = 1});
//   for (const Structure& batch : batches) use(batch[0]["age"], batch[1]);
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "cohort/core/export.h"
#include "cohort/data/dataset.h"
#include "cohort/data/files/csv_columns.h"
#include "cohort/data/paths.h"

namespace cohort::data::experimental {

// A column of a file, by its name or its index. A value type.
class CsvColumnKey {
 public:
  CsvColumnKey(int index) : key_(int64_t{index}) {}
  CsvColumnKey(int64_t index) : key_(index) {}
  CsvColumnKey(const char* name) : key_(std::string(name)) {}
  CsvColumnKey(std::string name) : key_(std::move(name)) {}

  const std::variant<int64_t, std::string>& key() const { return key_; }

 private:
  std::variant<int64_t, std::string> key_;
};

struct MakeCsvDatasetOptions {
  // The names of all columns. Default: the header of the files, the same in all.
  std::vector<std::string> column_names = {};
  // The type and the value of empty fields, or the type alone, of each selected column in the order
  // of the files. Default: types that fit the first rows, and 0 or "".
  std::vector<CsvColumn> column_defaults = {};
  // The column that elements have apart: (the others, this one).
  std::optional<std::string> label_name = {};
  // The wanted columns; elements have them in the order of the files. Default: all.
  std::vector<CsvColumnKey> select_columns = {};
  char field_delim = ',';
  bool use_quote_delim = true;
  std::string na_value = "";  // this text counts as an empty field, too
  bool header = true;         // the first record of each file has the names of the columns
  // The number of passes over the data. Default: without end, and without a smaller last batch.
  std::optional<int64_t> num_epochs = {};
  // Shuffles the files, and then rows, anew in each pass.
  bool shuffle = true;
  int64_t shuffle_buffer_size = 10'000;
  std::optional<uint64_t> shuffle_seed = {};
  // The number of batches that are read ahead; 0: none. Default: AUTOTUNE.
  std::optional<int64_t> prefetch_buffer_size = {};
  // The number of files that give one row each in turn, or AUTOTUNE. Default: 1.
  std::optional<int64_t> num_parallel_reads = {};
  // Does not wait for the file whose turn it is, where others are ready: the order may differ from
  // run to run.
  bool sloppy = false;
  // So many rows, from the first file on, say what types columns have. None: all rows.
  std::optional<int64_t> num_rows_for_inference = 100;
  // The compression of all files: "", "GZIP" or "ZLIB".
  std::string compression_type = "";
  // Leaves out records that do not fit, and what follows damage in a file.
  bool ignore_errors = false;
};

// Elements: dicts of a tensor for each column, by its name, of `batch_size` rows.
//
// A type is the first of int32, int64, float32, float64 and string that fits all values of a column
// in the first rows; a column without any is a string. `file_pattern`: paths and patterns, as for
// Dataset::list_files.
// Errors: those of list_files; InvalidArgument (no names of columns; one twice; options that do not
// fit the columns; a file whose header differs, or a row that does not fit, among those that were
// looked at: names the file); DataLoss (an empty file). While reading: as CsvDataset's; one that is
// of a column names it, too.
COHORT_API Dataset make_csv_dataset(const Paths& file_pattern, int64_t batch_size,
                                    const MakeCsvDatasetOptions& options = {});

}  // namespace cohort::data::experimental
