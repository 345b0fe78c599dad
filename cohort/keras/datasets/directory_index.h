// The files of a directory with their labels, in the order of Keras, and their split.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cohort/core/structure/structure.h"
#include "cohort/keras/datasets/directory_dataset.h"

namespace cohort::internal {

// The options that all datasets of directories have.
struct DirectoryQuery {
  std::string function;  // whose name begins errors
  std::string directory;
  std::vector<std::string_view> formats;  // the ends of names, in lower case
  keras::utils::DirectoryLabels labels;
  std::optional<std::string> label_mode;
  std::vector<std::string> class_names;
  std::optional<int64_t> batch_size;
  bool shuffle;
  std::optional<uint64_t> seed;
  std::optional<double> validation_split;
  std::optional<std::string> subset;
  bool follow_links;
};

// What becomes of the paths of files: a dataset of their contents. Labels, if there are any, are
// beside each path: (path, label).
using ReadFiles = std::function<data::Dataset(const data::Dataset& paths, bool labelled)>;

// The dataset of the query's subset, or of all files.
// Errors: InvalidArgument (an option; "both"), NotFound, PermissionDenied, DeadlineExceeded.
keras::utils::DirectoryDataset directory_dataset(const DirectoryQuery& query,
                                                 const ReadFiles& read);
// The datasets of both subsets. Errors: as above; InvalidArgument (another subset than "both").
keras::utils::DirectoryDatasets directory_datasets(const DirectoryQuery& query,
                                                   const ReadFiles& read);

// All bytes of a file. Errors: those of FileSystem, DeadlineExceeded, ResourceExhausted.
std::string directory_file_bytes(const std::string& path);

}  // namespace cohort::internal
