// The lines of text files.
//
//   for (const Structure& line : data::TextLineDataset("words.txt")) ...
#pragma once

#include <initializer_list>
#include <string>

#include "cohort/core/export.h"
#include "cohort/data/dataset.h"
#include "cohort/data/files/record_dataset_options.h"
#include "cohort/data/paths.h"

namespace cohort::data {

// Elements: string scalars, without the "\n" or "\r\n" that ends them. Errors and resuming: as
// TFRecordDataset's; any bytes are text.
class COHORT_API TextLineDataset : public Dataset {
 public:
  explicit TextLineDataset(const Paths& files, const RecordDatasetOptions& options = {});
  explicit TextLineDataset(std::initializer_list<std::string> files,
                           const RecordDatasetOptions& options = {});
  explicit TextLineDataset(const Dataset& files, const RecordDatasetOptions& options = {});
};

}  // namespace cohort::data
