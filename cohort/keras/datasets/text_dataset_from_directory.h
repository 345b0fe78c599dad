// Datasets of the text files of a directory, as keras.utils.text_dataset_from_directory.
//
//   auto reviews = keras::utils::text_dataset_from_directory(
//       "reviews", {.batch_size = 32, .seed = 7, .validation_split = 0.2, .subset = "training"});
//   for (const Structure& batch : reviews) train(batch[0].strings(), batch[1].tensor());
//   reviews.class_names();                      // the sub-directories: {"neg", "pos"}
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cohort/core/export.h"
#include "cohort/keras/datasets/directory_dataset.h"

namespace cohort::keras::utils {

struct TextDatasetFromDirectoryOptions {
  DirectoryLabels labels = "inferred";
  // "int": int32 [n]; "categorical": float32 [n, classes], a 1 in each row; "binary", of two
  // classes: float32 [n, 1]; std::nullopt: elements are texts without labels.
  std::optional<std::string> label_mode = "int";
  // The order of the inferred classes. Default: alphanumeric.
  std::vector<std::string> class_names = {};
  std::optional<int64_t> batch_size = 32;  // std::nullopt: single texts
  // The bytes of a text that are kept. Default: all.
  std::optional<int64_t> max_length = {};
  // Shuffles the files as Keras does for this seed, and elements in each pass anew. Without a seed
  // each pass is shuffled as a whole.
  bool shuffle = true;
  std::optional<uint64_t> seed = {};
  // The part of the files that is held out, and which part to give: "training" or "validation".
  std::optional<double> validation_split = {};
  std::optional<std::string> subset = {};
  // Whether directories that are symbolic links are entered.
  bool follow_links = false;
};

// Elements: (texts, labels), or texts. Files are those whose names end with .txt, in the
// directories of the classes and below them, sorted by path; for one seed, training and validation
// are Keras's.
// Errors: InvalidArgument (an option; no files; class_names that are not the sub-directories; not
// as many labels as files), NotFound (no such directory), PermissionDenied, DeadlineExceeded. While
// reading: those of files, which name the path.
COHORT_API DirectoryDataset text_dataset_from_directory(
    const std::string& directory, const TextDatasetFromDirectoryOptions& options = {});
// Both parts, with subset = "both". That for validation is not shuffled.
COHORT_API DirectoryDatasets text_datasets_from_directory(
    const std::string& directory, const TextDatasetFromDirectoryOptions& options);

}  // namespace cohort::keras::utils
