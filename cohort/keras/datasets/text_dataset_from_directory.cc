#include "cohort/keras/datasets/text_dataset_from_directory.h"

#include "cohort/core/error.h"
#include "cohort/core/text.h"
#include "cohort/keras/datasets/directory_index.h"

namespace cohort::keras::utils {
namespace {

constexpr char kTextsOfDirectory[] = "text_dataset_from_directory";

internal::DirectoryQuery texts_query(const std::string& directory,
                                     const TextDatasetFromDirectoryOptions& options) {
  if (options.max_length && *options.max_length < 0) {
    throw InvalidArgumentError(
        internal::str(kTextsOfDirectory, ": max_length is ", *options.max_length));
  }
  return {.function = kTextsOfDirectory,
          .directory = directory,
          .formats = {".txt"},
          .labels = options.labels,
          .label_mode = options.label_mode,
          .class_names = options.class_names,
          .batch_size = options.batch_size,
          .shuffle = options.shuffle,
          .seed = options.seed,
          .validation_split = options.validation_split,
          .subset = options.subset,
          .follow_links = options.follow_links};
}

internal::ReadFiles texts_reader(const TextDatasetFromDirectoryOptions& options) {
  return [max_length = options.max_length](const data::Dataset& files, bool labelled) {
    const auto read = [max_length](const StringTensor& path) {
      std::string text = internal::directory_file_bytes(std::string(path.item()));
      if (max_length) text.resize(std::min(text.size(), static_cast<size_t>(*max_length)));
      return StringTensor::scalar(text);
    };
    const data::MapOptions parallel = {.num_parallel_calls = data::AUTOTUNE,
                                       .output_spec = files.element_spec()};
    if (!labelled) return files.map(read, parallel);
    return files.map(
        [read](const StringTensor& path, const Tensor& label) { return tuple(read(path), label); },
        parallel);
  };
}

}  // namespace

DirectoryDataset text_dataset_from_directory(const std::string& directory,
                                             const TextDatasetFromDirectoryOptions& options) {
  return internal::directory_dataset(texts_query(directory, options), texts_reader(options));
}

DirectoryDatasets text_datasets_from_directory(const std::string& directory,
                                               const TextDatasetFromDirectoryOptions& options) {
  return internal::directory_datasets(texts_query(directory, options), texts_reader(options));
}

}  // namespace cohort::keras::utils
