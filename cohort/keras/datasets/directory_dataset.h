// What datasets of the files of a directory have in common.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "cohort/core/export.h"
#include "cohort/data/dataset.h"

namespace cohort::keras::utils {

// The labels of files: "inferred" of the names of sub-directories, a list of one for each file in
// alphanumeric order of their paths, or std::nullopt: there are none.
class COHORT_API DirectoryLabels {
 public:
  // Errors: InvalidArgument (another text).
  DirectoryLabels(const std::string& inferred);
  DirectoryLabels(const char* inferred) : DirectoryLabels(std::string(inferred)) {}
  DirectoryLabels(std::nullopt_t) {}
  DirectoryLabels(std::vector<int64_t> labels) : labels_(std::move(labels)) {}
  DirectoryLabels(std::initializer_list<int64_t> labels) : labels_(std::vector(labels)) {}

  bool inferred() const { return inferred_; }
  const std::optional<std::vector<int64_t>>& given() const { return labels_; }

 private:
  bool inferred_ = false;
  std::optional<std::vector<int64_t>> labels_;
};

// A dataset, and what it was made of.
class COHORT_API DirectoryDataset : public data::Dataset {
 public:
  DirectoryDataset(data::Dataset dataset, std::vector<std::string> class_names,
                   std::vector<std::string> file_paths)
      : Dataset(std::move(dataset)),
        class_names_(std::move(class_names)),
        file_paths_(std::move(file_paths)) {}

  // In the order of their indices; none without labels.
  const std::vector<std::string>& class_names() const { return class_names_; }
  // Before elements are shuffled in each pass.
  const std::vector<std::string>& file_paths() const { return file_paths_; }

 private:
  std::vector<std::string> class_names_;
  std::vector<std::string> file_paths_;
};

// auto [training, validation] = image_datasets_from_directory(...);
struct DirectoryDatasets {
  DirectoryDataset training;
  DirectoryDataset validation;
};

}  // namespace cohort::keras::utils
