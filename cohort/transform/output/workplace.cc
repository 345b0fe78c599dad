#include "cohort/transform/output/workplace.h"

#include "cohort/core/error.h"
#include "cohort/core/files/temporary_files.h"
#include "cohort/core/text.h"
#include "cohort/transform/output/transform_file.h"

namespace cohort::internal {
Workplace::Workplace(FileSystem& files, const std::string& output_directory, bool overwrite)
    : files_(files), output_(output_directory) {
  if (!overwrite && files.exists(join_path(output_, kTransformFolder))) {
    throw AlreadyExistsError(str("analyze_dataset: there is a transform in ", quoted(output_),
                                 "; give another directory, or .overwrite = true"));
  }
  files_.make_directories(output_);
  remove_unlocked_left_overs(files_, output_);
  path_ = unlocked_temporary_path(output_, kTransformFolder);
  files_.make_directories(assets(path_));
  files_.make_directories(spill(path_));
}

Workplace::~Workplace() { remove_tree(files_, path_); }

std::string Workplace::assets(const std::string& path) { return join_path(path, kAssetsFolder); }
std::string Workplace::spill(const std::string& path) { return join_path(path, "spill"); }

void Workplace::publish(const TransformGraph& graph, const AnalysesRun& run) {
  remove_tree(files_, spill(path_));
  write_text(files_, join_path(path_, kTransformFile), transform_text(graph, run));
  files_.sync_directory(assets(path_));
  const std::string metadata = join_path(output_, kMetadataFolder);
  files_.make_directories(metadata);
  const std::string folder = join_path(output_, kTransformFolder);
  std::string old;
  if (files_.exists(folder)) {
    old = unlocked_temporary_path(output_, "replaced");
    files_.rename(folder, old);
  }
  files_.rename(path_, folder);
  files_.sync_directory(output_);
  const std::string names = unlocked_temporary_path(metadata, kAssetMapFile);
  write_text(files_, names, asset_map_text(graph));
  files_.rename(names, join_path(metadata, kAssetMapFile));
  files_.sync_directory(metadata);
  if (!old.empty()) remove_tree(files_, old);
}

}  // namespace cohort::internal
