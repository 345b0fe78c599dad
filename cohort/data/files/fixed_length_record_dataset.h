// Records of equal length, as in CIFAR's files.
//
//   data::FixedLengthRecordDataset images("data_batch_1.bin", 1 + 3 * 32 * 32);
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>

#include "cohort/core/export.h"
#include "cohort/data/dataset.h"
#include "cohort/data/files/record_dataset_options.h"
#include "cohort/data/paths.h"

namespace cohort::data {

struct FixedLengthRecordOptions {
  int64_t header_bytes = 0;  // before the first record of each file
  int64_t footer_bytes = 0;  // after the last one
  RecordDatasetOptions files = {};
};

// Elements: string scalars of `record_bytes` bytes. Errors: as TFRecordDataset's; also
// InvalidArgument (record_bytes below 1, a negative number of bytes). While reading: DataLoss (what
// follows a file's last whole record is not as long as the footer). Resuming: as TFRecordDataset's.
class COHORT_API FixedLengthRecordDataset : public Dataset {
 public:
  FixedLengthRecordDataset(const Paths& files, int64_t record_bytes,
                           const FixedLengthRecordOptions& options = {});
  FixedLengthRecordDataset(std::initializer_list<std::string> files, int64_t record_bytes,
                           const FixedLengthRecordOptions& options = {});
  FixedLengthRecordDataset(const Dataset& files, int64_t record_bytes,
                           const FixedLengthRecordOptions& options = {});
};

}  // namespace cohort::data
