// Datasets of the pictures of a directory, as keras.utils.image_dataset_from_directory.
//
//   auto [training, validation] = keras::utils::image_datasets_from_directory(
//       "flora", {.image_size = {64, 64}, .seed = 7, .validation_split = 0.2, .subset = "both"});
//   for (const Structure& batch : training) train(batch[0], batch[1]);
//   training.class_names();                    // the sub-directories: {"daisy", "rose"}
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cohort/core/export.h"
#include "cohort/keras/datasets/directory_dataset.h"

namespace cohort::keras::utils {

struct ImageDatasetFromDirectoryOptions {
  DirectoryLabels labels = "inferred";
  // "int": int32 [n]; "categorical": float32 [n, classes], a 1 in each row; "binary", of two
  // classes: float32 [n, 1]; std::nullopt: elements are images without labels.
  std::optional<std::string> label_mode = "int";
  // The order of the inferred classes. Default: alphanumeric.
  std::vector<std::string> class_names = {};
  std::string color_mode = "rgb";                  // or "grayscale", "rgba": 1 or 4 channels
  std::optional<int64_t> batch_size = 32;          // std::nullopt: single images
  std::array<int64_t, 2> image_size = {256, 256};  // height and width of all images
  // Shuffles the files as Keras does for this seed, and elements in each pass anew. Without a seed
  // each pass is shuffled as a whole.
  bool shuffle = true;
  std::optional<uint64_t> seed = {};
  // The part of the files that is held out, and which part to give: "training" or "validation".
  std::optional<double> validation_split = {};
  std::optional<std::string> subset = {};
  // A method of image::resize.
  std::string interpolation = "bilinear";
  // Whether directories that are symbolic links are entered.
  bool follow_links = false;
  // Crops images to the form of image_size before they are resized. False: their form changes.
  bool crop_to_aspect_ratio = false;
};

// Elements: (images, labels), or images [n, height, width, channels], float32 from 0 to 255 (with
// "nearest" uint8). Files are those whose names end with .jpg, .jpeg, .png, .bmp and .gif, of which
// the last two cannot be decoded here, in the directories of the classes and below them, sorted by
// path; for one seed, training and validation are Keras's.
// Errors: InvalidArgument (an option; no files; class_names that are not the sub-directories; not
// as many labels as files), NotFound (no such directory), PermissionDenied, DeadlineExceeded. While
// reading: those of files and of io::decode_image, which name the path.
COHORT_API DirectoryDataset image_dataset_from_directory(
    const std::string& directory, const ImageDatasetFromDirectoryOptions& options = {});
// Both parts, with subset = "both". That for validation is not shuffled.
COHORT_API DirectoryDatasets image_datasets_from_directory(
    const std::string& directory, const ImageDatasetFromDirectoryOptions& options);

}  // namespace cohort::keras::utils
