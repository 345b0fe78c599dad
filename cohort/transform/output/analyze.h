// Finds what a preprocessing function asks of a whole dataset, and writes it down.
//
//   const auto output = transform::analyze_dataset(dataset.batch(1024), preprocess, directory);
//   for (const Structure& features : dataset.map(output.transform_features_layer())) ...
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "cohort/core/export.h"
#include "cohort/data/dataset.h"
#include "cohort/transform/graph/column.h"
#include "cohort/transform/output/transform_output.h"

namespace cohort::distribute {
class WorkerFunction;
namespace coordinator {
class ClusterCoordinator;
}
}  // namespace cohort::distribute

namespace cohort::transform {

struct AnalyzeOptions {
  // Replaces an output that is in the directory; without it that is an error.
  bool overwrite = false;
  // Threads that compute, in each process; 0: one a core.
  int64_t num_threads = 0;
  // Bytes that the tables of all vocabularies may take in each process before parts of them go to
  // files in the output directory, until the end. Each table of each thread takes 8 MiB at
  // least.
  int64_t memory_limit = int64_t{256} << 20;
  // How long a worker may give the others no sign of life, where workers analyse together. Each
  // gives one between two batches. At most 10 minutes.
  std::chrono::milliseconds timeout = std::chrono::minutes(10);
  // Into how many shards a coordinator divides the dataset. 0: four a worker where files are
  // divided, two where elements are.
  int64_t num_shards = 0;
};

// Calls the function once, with the columns of the dataset, to learn what it computes. Reads the
// dataset once for each phase: a phase makes all analyses that need no other's result, the next
// those that need it, and so on. Writes the output when all is done, so that the directory never
// holds half of one. The dataset must end, and give the same elements in each pass.
//
// `dataset` gives batches: dicts of columns, each a tensor or string tensor with a row in dimension
// 0, a RaggedTensor, a sparse matrix, or a VarLenFeature's {"values", "lengths"}; the last three
// are ragged columns, whose rows without values are missing ones.
//
// In the scope of a strategy with several workers (MultiWorkerMirroredStrategy) all workers make
// the call. Each reads its share, by the dataset's AutoShardPolicy (data/sharding/auto_shard.h;
// OFF: each reads all of its own dataset); a share may be empty. The first one merges what they
// have found, to the same bits as one process (quantiles: within their bound), and writes the
// directory, which all must see under the same path.
//
// Memory: a batch for each thread, two batches ahead, .memory_limit, and some kilobytes an
// analysis; between workers 1 MiB for each of them.
// Errors: InvalidArgument (batches of another form; what the function's operations say of columns;
// values that an analysis refuses: names the batch), AlreadyExists (there is an output),
// ResourceExhausted (the disk is full), what the function and reading the dataset throw. The
// directory is then as it was before. Of several workers all get the error of one, with its name;
// Unavailable (a worker was lost), DeadlineExceeded (.timeout), FailedPrecondition (they analyse
// different datasets, or call this in a step), NotFound (one does not see the directory).
// COLLECTIVE over the tasks of the strategy in scope.
COHORT_API TFTransformOutput analyze_dataset(const data::Dataset& dataset,
                                             const PreprocessingFunction& function,
                                             const std::string& output_directory,
                                             const AnalyzeOptions& options = {});

// The same over the workers of a cluster of parameter servers, which read the dataset that
// `dataset_fn` makes (ParameterServerStrategy::function): the coordinator alone makes the call, and
// hands out shards. A shard whose worker is lost is read by another one, and counts once. The
// function makes the whole dataset, whose AutoShardPolicy says how it is divided; with OFF it makes
// one shard, number input_pipeline_id of num_input_pipelines. A shard must be read within
// ClusterCoordinatorOptions::closure_timeout. Functions that map() calls must be registered in the
// workers, too (register_function). All tasks must see the output directory under the same path.
// Errors: as above, and those of ClusterCoordinator::schedule and join; an error of a shard names
// it and its worker.
COHORT_API TFTransformOutput
analyze_dataset(const distribute::coordinator::ClusterCoordinator& coordinator,
                const distribute::WorkerFunction& dataset_fn, const PreprocessingFunction& function,
                const std::string& output_directory, const AnalyzeOptions& options = {});

struct AnalyzedDataset {
  data::Dataset dataset;  // mapped by the layer
  TFTransformOutput output;
};
COHORT_API AnalyzedDataset analyze_and_transform_dataset(const data::Dataset& dataset,
                                                         const PreprocessingFunction& function,
                                                         const std::string& output_directory,
                                                         const AnalyzeOptions& options = {});

}  // namespace cohort::transform
