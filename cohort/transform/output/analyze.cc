#include "cohort/transform/output/analyze.h"

#include <utility>

#include "cohort/core/error.h"
#include "cohort/core/files/file_system.h"
#include "cohort/core/files/temporary_files.h"
#include "cohort/core/text.h"
#include "cohort/data/iteration/work_group.h"
#include "cohort/transform/graph/batch_columns.h"
#include "cohort/transform/graph/graph.h"
#include "cohort/transform/output/transform_file.h"
#include "cohort/transform/passes/run_analyses.h"

namespace cohort::transform {
namespace {

using internal::FileSystem;
using internal::join_path;
using internal::quoted;
using internal::str;

// Removes a directory of files and directories, as far as that goes.
void remove_tree(FileSystem& files, const std::string& path) noexcept {
  try {
    for (const std::string& name : files.list(path)) remove_tree(files, join_path(path, name));
  } catch (const Error&) {
    // A file, or one that cannot be read.
  }
  try {
    files.remove(path);
  } catch (const Error&) {
    // What cannot be removed stays.
  }
}

// A directory beside the output in which it is made, and from which it is published at once.
class Workplace {
 public:
  Workplace(FileSystem& files, const std::string& output_directory)
      : files_(files), output_(output_directory) {
    files_.make_directories(output_);
    internal::remove_unlocked_left_overs(files_, output_);
    path_ = internal::unlocked_temporary_path(output_, internal::kTransformFolder);
    files_.make_directories(assets());
    files_.make_directories(spill());
  }
  ~Workplace() { remove_tree(files_, path_); }
  Workplace(const Workplace&) = delete;
  Workplace& operator=(const Workplace&) = delete;

  std::string assets() const { return join_path(path_, internal::kAssetsFolder); }
  std::string spill() const { return join_path(path_, "spill"); }

  void publish(const internal::TransformGraph& graph, const internal::AnalysesRun& run) {
    remove_tree(files_, spill());
    internal::write_text(files_, join_path(path_, internal::kTransformFile),
                         internal::transform_text(graph, run));
    files_.sync_directory(assets());
    const std::string metadata = join_path(output_, internal::kMetadataFolder);
    files_.make_directories(metadata);
    const std::string folder = join_path(output_, internal::kTransformFolder);
    std::string old;
    if (files_.exists(folder)) {
      old = internal::unlocked_temporary_path(output_, "replaced");
      files_.rename(folder, old);
    }
    files_.rename(path_, folder);
    files_.sync_directory(output_);
    internal::write_text(files_, join_path(metadata, internal::kAssetMapFile),
                         internal::asset_map_text(graph));
    if (!old.empty()) remove_tree(files_, old);
  }

 private:
  FileSystem& files_;
  const std::string output_;
  std::string path_;
};

}  // namespace

TFTransformOutput analyze_dataset(const data::Dataset& dataset,
                                  const PreprocessingFunction& function,
                                  const std::string& output_directory,
                                  const AnalyzeOptions& options) {
  if (options.num_threads < 0 || options.memory_limit < 0) {
    throw InvalidArgumentError(
        str("analyze_dataset: num_threads and memory_limit are at least 0, "
            "but got ",
            options.num_threads, " and ", options.memory_limit));
  }
  if (dataset.cardinality() == data::INFINITE_CARDINALITY) {
    throw InvalidArgumentError("analyze_dataset: the dataset has no end; leave out repeat()");
  }
  FileSystem& files = internal::posix_file_system();
  const std::string existing = join_path(output_directory, internal::kTransformFolder);
  if (!options.overwrite && files.exists(existing)) {
    throw AlreadyExistsError(str("analyze_dataset: there is a transform in ",
                                 quoted(output_directory),
                                 "; give another directory, or .overwrite = true"));
  }
  const internal::TransformGraph graph =
      internal::trace(function, internal::column_types(dataset.element_spec()));
  Workplace workplace(files, output_directory);
  const internal::AnalysesRun run = internal::run_analyses(
      graph, dataset,
      {.files = files,
       .directory = workplace.assets(),
       .spill_directory = workplace.spill(),
       .num_threads =
           options.num_threads > 0 ? options.num_threads : internal::num_pipeline_threads(),
       .memory_limit = static_cast<size_t>(options.memory_limit)});
  workplace.publish(graph, run);
  return TFTransformOutput(output_directory);
}

AnalyzedDataset analyze_and_transform_dataset(const data::Dataset& dataset,
                                              const PreprocessingFunction& function,
                                              const std::string& output_directory,
                                              const AnalyzeOptions& options) {
  TFTransformOutput output = analyze_dataset(dataset, function, output_directory, options);
  return {.dataset = dataset.map(output.transform_features_layer(),
                                 {.num_parallel_calls = data::AUTOTUNE}),
          .output = output};
}

}  // namespace cohort::transform
