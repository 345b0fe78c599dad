// Batches of the features of tf.Examples in files of records.
//
//   auto batches = data::experimental::make_batched_features_dataset(
//       "train-*.tfrecord", 128,
//       {{"age", io::FixedLenFeature({}, int64)}, {"label", io::FixedLenFeature({}, float32)}},
//       {.label_key = "label", .num_epochs = 1});
//   for (const Structure& batch : batches) use(batch[0]["age"], batch[1]);
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "cohort/core/export.h"
#include "cohort/data/dataset.h"
#include "cohort/data/files/example_features.h"
#include "cohort/data/files/record_dataset_options.h"
#include "cohort/data/paths.h"

namespace cohort::data::experimental {

struct MakeBatchedFeaturesDatasetOptions {
  // The records of a file, as string scalars. Default: TFRecordDataset.
  std::function<Dataset(const std::string& file)> reader = {};
  // The feature that elements have apart: (the others, this one).
  std::optional<std::string> label_key = {};
  // The options of the default reader, apart from num_parallel_reads.
  RecordDatasetOptions reader_args = {};
  // The number of passes over the data. Default: without end, and without a smaller last batch.
  std::optional<int64_t> num_epochs = {};
  // Shuffles the files, and then records, anew in each pass.
  bool shuffle = true;
  int64_t shuffle_buffer_size = 10'000;
  std::optional<uint64_t> shuffle_seed = {};
  // The number of batches that are read ahead; 0: none. Default: AUTOTUNE.
  std::optional<int64_t> prefetch_buffer_size = {};
  // The number of files that give one record each in turn, or AUTOTUNE. Default: 1.
  std::optional<int64_t> reader_num_threads = {};
  // The number of batches that are parsed at once, or AUTOTUNE. Default: 2.
  std::optional<int64_t> parser_num_threads = {};
  // Does not wait for the file whose turn it is, where others are ready: the order may differ from
  // run to run.
  bool sloppy_ordering = false;
  bool drop_final_batch = false;  // leaves out the last batch if it has fewer records
};

// Elements: what io::parse_example gives for a batch of records. `file_pattern`: paths and
// patterns, as for Dataset::list_files.
// Errors: those of list_files; InvalidArgument (an option; the label is no feature). While reading:
// those of the reader and of parse_example.
COHORT_API Dataset make_batched_features_dataset(
    const Paths& file_pattern, int64_t batch_size, const io::ExampleFeatures& features,
    const MakeBatchedFeaturesDatasetOptions& options = {});

}  // namespace cohort::data::experimental
