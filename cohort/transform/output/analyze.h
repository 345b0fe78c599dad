// Finds what a preprocessing function asks of a whole dataset, and writes it down.
//
//   const auto output = transform::analyze_dataset(dataset.batch(1024), preprocess, directory);
//   for (const Structure& features : dataset.map(output.transform_features_layer())) ...
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "cohort/core/export.h"
#include "cohort/data/dataset.h"
#include "cohort/transform/graph/column.h"
#include "cohort/transform/output/transform_output.h"

namespace cohort::transform {

struct AnalyzeOptions {
  // Replaces an output that is in the directory; without it that is an error.
  bool overwrite = false;
  // Threads that compute; 0: one a core.
  int64_t num_threads = 0;
  // Bytes that the tables of all vocabularies may take before parts of them go to files in the
  // output directory, until the end. Each table of each thread takes 8 MiB at least.
  int64_t memory_limit = int64_t{256} << 20;
};

// Calls the function once, with the columns of the dataset, to learn what it computes. Reads the
// dataset once for each phase: a phase makes all analyses that need no other's result, the next
// those that need it, and so on. Writes the output when all is done, so that the directory never
// holds half of one. The dataset must end, and give the same elements in each pass.
//
// `dataset` gives batches: dicts of columns, each a tensor or string tensor with a row in dimension
// 0, a RaggedTensor, a sparse matrix, or a VarLenFeature's {"values", "lengths"}; the last three
// are ragged columns, whose rows without values are missing ones.
// Memory: a batch for each thread, two batches ahead, .memory_limit, and some kilobytes an
// analysis.
// Errors: InvalidArgument (batches of another form; what the function's operations say of columns;
// values that an analysis refuses: names the batch), AlreadyExists (there is an output),
// ResourceExhausted (the disk is full), what the function and reading the dataset throw. The
// directory is then as it was before.
COHORT_API TFTransformOutput analyze_dataset(const data::Dataset& dataset,
                                             const PreprocessingFunction& function,
                                             const std::string& output_directory,
                                             const AnalyzeOptions& options = {});

struct AnalyzedDataset {
  data::Dataset dataset;  // mapped by the layer
  TFTransformOutput output;
};
COHORT_API AnalyzedDataset analyze_and_transform_dataset(const data::Dataset& dataset,
                                                         const PreprocessingFunction& function,
                                                         const std::string& output_directory,
                                                         const AnalyzeOptions& options = {});

}  // namespace cohort::transform
