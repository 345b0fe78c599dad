// The way from CSV files to what the model takes, in training and in predicting alike.
#pragma once

#include <cohort/cohort.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace tabular {

// What is read of each column: a string, or float32 with NaN where the number is missing.
using CsvColumns = std::map<std::string, cohort::data::CsvColumn>;

// Columns as their first values look, and the label as a string, whatever it looks like.
// Errors: InvalidArgument (no column of that name).
CsvColumns columns_of_files(const std::string& path, const std::string& label,
                            const std::string& na_value);
// The columns that the transform was analysed with.
CsvColumns columns_of_transform(const cohort::transform::TFTransformOutput& output);

struct ReadOptions {
  int64_t batch = 128;
  std::string na_value = "NA";
  // Missing: rows come in the order of the files.
  std::optional<uint64_t> shuffle_seed = std::nullopt;
};

// Batches of rows, dicts of the columns that the files have.
// Errors: InvalidArgument (a column that is not among `columns`), those of make_csv_dataset.
cohort::data::Dataset read_table(const std::string& path, const CsvColumns& columns,
                                 const ReadOptions& options = {});

// Batches of features: what the transform makes of them, with words as multi-hot vectors. The
// classes are the feature "label", if the rows have it.
cohort::data::Dataset features_of(const cohort::data::Dataset& rows,
                                  const cohort::transform::TFTransformOutput& output);

}  // namespace tabular
