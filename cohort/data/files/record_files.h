// Datasets that read files of records, one after another or several in turn: what TFRecordDataset,
// TextLineDataset, FixedLengthRecordDataset and CsvDataset have in common.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "cohort/core/files/compression.h"
#include "cohort/core/files/file_deadline.h"
#include "cohort/data/dataset.h"
#include "cohort/data/files/record_format.h"
#include "cohort/data/graph/node.h"

namespace cohort::internal {

struct RecordFilesOptions {
  Compression compression = Compression::kNone;
  int64_t buffer_size = 128 << 10;
  // How many files are read in turn, a record each; 1: one after another, without threads.
  int64_t num_parallel_reads = 1;
  // Damage ends a file, not the reading.
  bool ignore_errors = false;
  FileDeadline deadline = kDefaultFileDeadline;
};

// How often ignore_errors left out the rest of a file, in all iterators of a dataset.
using SkippedFiles = std::shared_ptr<std::atomic<int64_t>>;
// Whether the log has said that there is a file of no bytes.
using WarnedOfEmpty = std::shared_ptr<std::atomic<bool>>;

// `names`: string scalars. Errors: InvalidArgument (buffer_size or num_parallel_reads below 1; the
// latter may be data::AUTOTUNE).
DataNodePtr make_record_files(DataNodePtr names, std::shared_ptr<const RecordFormat> format,
                              const RecordFilesOptions& options,
                              SkippedFiles skipped = std::make_shared<std::atomic<int64_t>>(0));

// The names as a dataset.
DataNodePtr file_names(const data::Paths& paths);

}  // namespace cohort::internal
