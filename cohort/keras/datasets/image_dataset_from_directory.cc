#include "cohort/keras/datasets/image_dataset_from_directory.h"

#include <algorithm>

#include "cohort/core/error.h"
#include "cohort/core/error_context.h"
#include "cohort/core/text.h"
#include "cohort/image/crop.h"
#include "cohort/image/decode.h"
#include "cohort/image/resize.h"
#include "cohort/keras/datasets/directory_index.h"

namespace cohort::keras::utils {
namespace {

using internal::quoted;
using internal::str;
using ImageOptions = ImageDatasetFromDirectoryOptions;

constexpr char kImagesOfDirectory[] = "image_dataset_from_directory";
constexpr std::array<std::string_view, 8> kMethods = {
    "bilinear", "nearest", "bicubic", "area", "lanczos3", "lanczos5", "gaussian", "mitchellcubic"};

int64_t channels_of(const std::string& color_mode) {
  if (color_mode == "grayscale") return 1;
  if (color_mode == "rgb") return 3;
  if (color_mode == "rgba") return 4;
  throw InvalidArgumentError(str(kImagesOfDirectory, ": color_mode is ", quoted(color_mode),
                                 "; it is \"grayscale\", \"rgb\" or \"rgba\""));
}

std::string method_of(const std::string& interpolation) {
  const std::string method = internal::lower(interpolation);
  if (std::find(kMethods.begin(), kMethods.end(), method) != kMethods.end()) return method;
  throw InvalidArgumentError(str(kImagesOfDirectory, ": interpolation is ", quoted(interpolation),
                                 ", which image::resize does not know"));
}

// The middle of the image that has the form of `size`, as Keras's smart_resize rounds it.
Tensor cropped(const Tensor& image, const std::array<int64_t, 2>& size) {
  const int64_t height = image.size(0), width = image.size(1);
  const auto scaled = [](int64_t side, int64_t to, int64_t from) {
    return static_cast<int64_t>(static_cast<float>(side * to) / static_cast<float>(from));
  };
  const int64_t crop_height = std::min(height, scaled(width, size[0], size[1]));
  const int64_t crop_width = std::min(width, scaled(height, size[1], size[0]));
  if (crop_height < 1 || crop_width < 1) {
    throw InvalidArgumentError(str("the image of ", height, " x ", width,
                                   " pixels has none left in the form of ", size[0], " x ",
                                   size[1]));
  }
  return image::crop_to_bounding_box(image, (height - crop_height) / 2, (width - crop_width) / 2,
                                     crop_height, crop_width);
}

struct LoadImage {
  int64_t channels;
  std::array<int64_t, 2> size;
  std::string method;
  bool crop;

  Tensor operator()(const StringTensor& path) const {
    try {
      const std::string bytes = internal::directory_file_bytes(std::string(path.item()));
      Tensor image = io::decode_image(bytes, {.channels = channels, .expand_animations = false});
      if (crop) image = cropped(image, size);
      return image::resize(image, size, {.method = method});
    } catch (const Error&) {
      internal::rethrow_with_context(quoted(std::string(path.item())));
    }
  }
  StructureSpec spec() const {
    return TensorSpec({{size[0], size[1], channels}}, method == "nearest" ? uint8 : float32);
  }
};

internal::DirectoryQuery images_query(const std::string& directory, const ImageOptions& options) {
  return {.function = kImagesOfDirectory,
          .directory = directory,
          .formats = {".bmp", ".gif", ".jpeg", ".jpg", ".png"},
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

internal::ReadFiles images_reader(const ImageOptions& options) {
  if (options.image_size[0] < 1 || options.image_size[1] < 1) {
    throw InvalidArgumentError(str(kImagesOfDirectory, ": image_size is ",
                                   internal::shape_str(options.image_size),
                                   "; it is two positive numbers"));
  }
  const LoadImage load{channels_of(options.color_mode), options.image_size,
                       method_of(options.interpolation), options.crop_to_aspect_ratio};
  return [load](const data::Dataset& files, bool labelled) {
    if (!labelled) {
      return files.map([load](const StringTensor& path) { return load(path); },
                       {.num_parallel_calls = data::AUTOTUNE, .output_spec = load.spec()});
    }
    return files.map(
        [load](const StringTensor& path, const Tensor& label) { return tuple(load(path), label); },
        {.num_parallel_calls = data::AUTOTUNE,
         .output_spec =
             StructureSpec::make_tuple({load.spec(), files.element_spec().members()[1]})});
  };
}

}  // namespace

DirectoryDataset image_dataset_from_directory(const std::string& directory,
                                              const ImageOptions& options) {
  const internal::ReadFiles read = images_reader(options);
  return internal::directory_dataset(images_query(directory, options), read);
}

DirectoryDatasets image_datasets_from_directory(const std::string& directory,
                                                const ImageOptions& options) {
  const internal::ReadFiles read = images_reader(options);
  return internal::directory_datasets(images_query(directory, options), read);
}

}  // namespace cohort::keras::utils
