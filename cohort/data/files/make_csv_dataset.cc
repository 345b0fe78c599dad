#include "cohort/data/files/make_csv_dataset.h"

#include <algorithm>
#include <set>
#include <utility>

#include "cohort/core/error.h"
#include "cohort/core/error_context.h"
#include "cohort/core/text.h"
#include "cohort/core/text_stream.h"
#include "cohort/data/files/batched_files.h"
#include "cohort/data/files/csv_format.h"
#include "cohort/data/files/csv_inference.h"
#include "cohort/data/files/record_files.h"

namespace cohort::internal {
namespace {

using data::Dataset;
using data::experimental::CsvColumnKey;
using data::experimental::MakeCsvDatasetOptions;

std::vector<std::string> names_in(const Dataset& files) {
  std::vector<std::string> names;
  for (const Structure& name : files) names.emplace_back(name.strings().item());
  return names;
}

std::string listed(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + quoted(name);
  return text;
}

void check_names(const std::vector<std::string>& names) {
  std::set<std::string> seen;
  for (const std::string& name : names) {
    if (seen.insert(name).second) continue;
    throw InvalidArgumentError(str("two columns are called ", quoted(name),
                                   ": give column_names, one for each column, all different"));
  }
}

size_t index_of(const CsvColumnKey& key, const std::vector<std::string>& names) {
  if (const auto* index = std::get_if<int64_t>(&key.key())) {
    if (*index >= 0 && *index < std::ssize(names)) return static_cast<size_t>(*index);
    throw InvalidArgumentError(str("select_columns has ", *index, ", but there are ", names.size(),
                                   " columns, counted from 0"));
  }
  const auto& name = std::get<std::string>(key.key());
  const auto found = std::find(names.begin(), names.end(), name);
  if (found != names.end()) return static_cast<size_t>(found - names.begin());
  throw InvalidArgumentError(
      str("select_columns has ", quoted(name), ", but the columns are ", listed(names)));
}

// The indices of the wanted columns, ascending.
std::vector<size_t> selected(const std::vector<CsvColumnKey>& keys,
                             const std::vector<std::string>& names) {
  std::vector<size_t> indices;
  if (keys.empty()) {
    for (size_t i = 0; i < names.size(); ++i) indices.push_back(i);
    return indices;
  }
  for (const CsvColumnKey& key : keys) indices.push_back(index_of(key, names));
  std::sort(indices.begin(), indices.end());
  const auto twice = std::adjacent_find(indices.begin(), indices.end());
  if (twice == indices.end()) return indices;
  throw InvalidArgumentError(str("select_columns has ", quoted(names[*twice]), " twice"));
}

// What the files look like, as far as the options do not say it.
struct Table {
  std::vector<data::CsvColumn> columns;
  CsvFormatOptions format;
};

Table table_of(const std::vector<std::string>& files, const MakeCsvDatasetOptions& options) {
  Table table;
  data::CsvOptions& csv = table.format.csv;
  csv.header = options.header;
  csv.field_delim = options.field_delim;
  csv.use_quote_delim = options.use_quote_delim;
  csv.na_value = options.na_value;
  csv.files.compression_type = options.compression_type;
  if (options.column_names.empty() && !options.header) {
    throw InvalidArgumentError("files without a header (.header = false) need column_names");
  }
  if (options.num_rows_for_inference && *options.num_rows_for_inference < 0) {
    throw InvalidArgumentError(str("num_rows_for_inference is ", *options.num_rows_for_inference,
                                   "; it must be at least 0, or none for all rows"));
  }
  const std::vector<std::string> names =
      options.column_names.empty() ? csv_header(files, csv) : options.column_names;
  check_names(names);
  const std::vector<size_t> fields = selected(options.select_columns, names);
  for (const size_t field : fields) csv.column_names.push_back(names[field]);
  if (!options.select_columns.empty()) csv.select_cols.assign(fields.begin(), fields.end());
  table.format.label_name = options.label_name;
  if (options.label_name && std::find(csv.column_names.begin(), csv.column_names.end(),
                                      *options.label_name) == csv.column_names.end()) {
    throw InvalidArgumentError(str("label_name is ", quoted(*options.label_name),
                                   ", but the columns are ", listed(csv.column_names)));
  }
  table.columns = options.column_defaults;
  if (table.columns.empty()) {
    table.format.rows_of_inference = options.num_rows_for_inference.value_or(-1);
    table.columns = infer_csv_columns(
        files, csv, {names.size(), fields, options.num_rows_for_inference, options.ignore_errors});
  } else if (table.columns.size() != fields.size()) {
    throw InvalidArgumentError(str("column_defaults has ", table.columns.size(), " entries for ",
                                   fields.size(), " columns; it needs one for each"));
  }
  return table;
}

Dataset rows_of(const Dataset& files, Table table, const MakeCsvDatasetOptions& options) {
  const int64_t reads = options.num_parallel_reads.value_or(1);
  if (reads == 1 || (!options.sloppy && !options.ignore_errors)) {
    table.format.csv.files.num_parallel_reads = reads;
    const Dataset rows(make_csv(files.node(), std::move(table.columns), std::move(table.format)));
    return options.ignore_errors ? rows.ignore_errors() : rows;
  }
  // A record that is left out takes no turn, and with .sloppy, a file that is late has none.
  return files.interleave(
      [table = std::move(table), ignore = options.ignore_errors](const StringTensor& file) {
        const Dataset rows(make_csv(file_names(file), table.columns, table.format));
        return ignore ? rows.ignore_errors() : rows;
      },
      files_in_turn(reads, options.sloppy));
}

Dataset make_csv_batches(const data::Paths& file_pattern, int64_t batch_size,
                         const MakeCsvDatasetOptions& options) {
  Dataset files = Dataset::list_files(file_pattern, {.shuffle = false});
  Table table = table_of(names_in(files), options);
  if (options.shuffle) files = files.shuffle(files.cardinality(), {.seed = options.shuffle_seed});
  return batched(rows_of(files, std::move(table), options),
                 {.batch_size = batch_size,
                  .drop_remainder = false,
                  .num_epochs = options.num_epochs,
                  .shuffle = options.shuffle,
                  .shuffle_buffer_size = options.shuffle_buffer_size,
                  .shuffle_seed = options.shuffle_seed})
      .prefetch(options.prefetch_buffer_size.value_or(data::AUTOTUNE));
}

}  // namespace
}  // namespace cohort::internal

namespace cohort::data::experimental {

Dataset make_csv_dataset(const Paths& file_pattern, int64_t batch_size,
                         const MakeCsvDatasetOptions& options) {
  try {
    return internal::make_csv_batches(file_pattern, batch_size, options);
  } catch (const Error&) {
    internal::rethrow_with_context("make_csv_dataset");
  }
}

}  // namespace cohort::data::experimental
