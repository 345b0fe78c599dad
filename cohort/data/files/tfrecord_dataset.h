// The records of TFRecord files.
//
//   data::TFRecordDataset dataset({"a.tfrecord", "b.tfrecord"}, {.num_parallel_reads = 2});
//   for (const Structure& record : dataset) use(record.strings().item());
#pragma once

#include <atomic>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>

#include "cohort/core/export.h"
#include "cohort/data/dataset.h"
#include "cohort/data/files/record_dataset_options.h"
#include "cohort/data/paths.h"

namespace cohort::data {

// Elements: string scalars; large ones are not copied.
//
// Errors while reading: NotFound (a file is missing), DataLoss (damaged, cut short, or no TFRecord
// file): file, byte offset and what is wrong; the next element is then the first of another file. A
// device's error is one only when it comes twice.
// Resuming: by the place in the file, reading at most buffer_size bytes again; compressed files are
// inflated again up to there.
class COHORT_API TFRecordDataset : public Dataset {
 public:
  // Errors: InvalidArgument (an option).
  explicit TFRecordDataset(const Paths& files, const RecordDatasetOptions& options = {});
  explicit TFRecordDataset(std::initializer_list<std::string> files,
                           const RecordDatasetOptions& options = {});
  // `files`: a dataset of string scalars, read as they are needed.
  explicit TFRecordDataset(const Dataset& files, const RecordDatasetOptions& options = {});

  // The number of times that ignore_errors has left out the rest of a file so far, in all iterators
  // of the dataset and of datasets made from it.
  int64_t num_skipped_files() const { return skipped_->load(std::memory_order_relaxed); }

 private:
  using Skipped = std::shared_ptr<std::atomic<int64_t>>;
  TFRecordDataset(internal::DataNodePtr names, Options dataset_options,
                  const RecordDatasetOptions& options, Skipped skipped);

  Skipped skipped_;
};

}  // namespace cohort::data
