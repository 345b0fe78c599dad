#include "cohort/data/files/csv_dataset.h"

#include <utility>

#include "cohort/data/files/csv_format.h"
#include "cohort/data/files/record_files.h"

namespace cohort::data {

CsvDataset::CsvDataset(const Paths& files, std::vector<CsvColumn> columns,
                       const CsvOptions& options)
    : Dataset(
          internal::make_csv(internal::file_names(files), std::move(columns), {.csv = options})) {}

CsvDataset::CsvDataset(std::initializer_list<std::string> files, std::vector<CsvColumn> columns,
                       const CsvOptions& options)
    : CsvDataset(Paths(files), std::move(columns), options) {}

CsvDataset::CsvDataset(const Dataset& files, std::vector<CsvColumn> columns,
                       const CsvOptions& options)
    : Dataset(internal::make_csv(files.node(), std::move(columns), {.csv = options}),
              files.options()) {}

}  // namespace cohort::data
