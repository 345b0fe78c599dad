#include "cohort/keras/datasets/image_files.h"

#include <ATen/ops/empty.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>

#include "cohort/core/error.h"
#include "cohort/core/observe/logging.h"
#include "cohort/keras/datasets/download.h"
#include "cohort/keras/datasets/idx.h"

namespace cohort::internal {
namespace {

using keras::datasets::LoadOptions;
using keras::datasets::Split;
using keras::datasets::TrainTest;

constexpr int64_t kImageSide = 28;

// Gives the path at which a file is.
using Locate = std::function<std::string(const PublishedFile&)>;

std::string locate_in_directory(const std::string& directory, const PublishedFile& file) {
  const std::filesystem::path path = std::filesystem::path(directory) / file.name;
  for (const char* suffix : {".gz", ""}) {
    std::error_code ignored;
    if (std::filesystem::exists(path.string() + suffix, ignored)) return path.string() + suffix;
  }
  throw NotFoundError(str("the data set's directory ", directory, " holds neither ", file.name,
                          ".gz nor ", file.name));
}

std::filesystem::path cache_root(const LoadOptions& options) {
  if (!options.cache_directory.empty()) return options.cache_directory;
  const char* cache = std::getenv("XDG_CACHE_HOME");
  if (cache && *cache) return std::filesystem::path(cache) / "cohort" / "datasets";
  const char* home = std::getenv("HOME");
  if (home && *home) return std::filesystem::path(home) / ".cache" / "cohort" / "datasets";
  throw NotFoundError(
      "there is no cache for data sets: neither XDG_CACHE_HOME nor HOME is set; give "
      "LoadOptions.cache_directory or LoadOptions.directory");
}

std::string locate_in_cache(const PublishedImages& images, const LoadOptions& options,
                            const PublishedFile& file) {
  const std::string path = cache_root(options) / images.name / (file.name + ".gz");
  std::error_code ignored;
  if (std::filesystem::exists(path, ignored)) return path;
  if (!options.download) {
    throw NotFoundError(str(path,
                            " is missing and LoadOptions.download is false; give "
                            "LoadOptions.directory, or allow the download"));
  }
  const std::string url = images.base_url + file.name + ".gz";
  log_info("Downloading data from ", url);
  try {
    download({.url = url, .target = path, .md5 = file.md5});
  } catch (const UnavailableError& error) {
    throw UnavailableError(str(error.what(),
                               "; without a network, fetch the data set's files "
                               "elsewhere and pass their folder as LoadOptions.directory"));
  }
  return path;
}

Tensor to_tensor(const IdxArray& array) {
  Tensor tensor = at::empty(array.shape, at::TensorOptions().dtype(uint8));
  if (!array.values.empty()) {
    std::memcpy(tensor.data_ptr<uint8_t>(), array.values.data(), array.values.size());
  }
  return tensor;
}

Split load_split(const Locate& locate, const PublishedFile& images_file,
                 const PublishedFile& labels_file) {
  const std::string images_path = locate(images_file);
  const std::string labels_path = locate(labels_file);
  const IdxArray images = read_idx_file(images_path, 3);
  const IdxArray labels = read_idx_file(labels_path, 1);
  if (images.shape[1] != kImageSide || images.shape[2] != kImageSide) {
    throw DataLossError(str(images_path, ", byte 8: images of ", images.shape[1], " x ",
                            images.shape[2], " pixels instead of 28 x 28"));
  }
  if (images.shape[0] != labels.shape[0]) {
    throw InvalidArgumentError(str(images_path, " holds ", images.shape[0], " images, but ",
                                   labels_path, " holds ", labels.shape[0], " labels"));
  }
  return {.images = to_tensor(images), .labels = to_tensor(labels)};
}

}  // namespace

TrainTest load_published_images(const PublishedImages& images, const LoadOptions& options) {
  const Locate locate = [&](const PublishedFile& file) {
    return options.directory.empty() ? locate_in_cache(images, options, file)
                                     : locate_in_directory(options.directory, file);
  };
  return {.train = load_split(locate, images.train_images, images.train_labels),
          .test = load_split(locate, images.test_images, images.test_labels)};
}

}  // namespace cohort::internal
