#include "cohort/keras/datasets/image_dataset_from_directory.h"

#include <ATen/ops/full.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "cohort/core/testing_errors.h"
#include "cohort/data/test_util.h"
#include "cohort/data/testing_files.h"
#include "cohort/image/encode.h"

namespace cohort::keras::utils {
namespace {

using internal::str;
using testing::ElementsAre;
using testing::HasSubstr;
using ImageOptions = ImageDatasetFromDirectoryOptions;

// Pictures of one colour each, of different sizes.
struct ImageDirectory : data::FilesTest {
  ImageDirectory() {
    std::filesystem::create_directories(path("images/a"));
    std::filesystem::create_directories(path("images/b"));
    for (int64_t i = 0; i < 5; ++i) {
      const Tensor picture = at::full({4 + i, 8, 3}, 10 * i, at::kByte);
      write(str("images/", i < 3 ? "a" : "b", "/", i, ".png"), io::encode_png(picture));
    }
  }
  DirectoryDataset images(const ImageOptions& options) const {
    return image_dataset_from_directory(path("images"), options);
  }
};

TEST_F(ImageDirectory, GivesImagesOfOneSize) {
  const DirectoryDataset dataset =
      images({.batch_size = 3, .image_size = {2, 3}, .shuffle = false});
  EXPECT_THAT(dataset.class_names(), ElementsAre("a", "b"));
  EXPECT_EQ(str(dataset.element_spec()),
            "(TensorSpec(shape=(None, 2, 3, 3), dtype=float32), "
            "TensorSpec(shape=(None,), dtype=int32))");
  double last = 0;
  for (const Structure& batch : dataset) {
    EXPECT_EQ(dataset.element_spec().first_mismatch(batch), std::nullopt);
    last = batch[0].tensor().max().item<double>();
  }
  EXPECT_EQ(last, 40);
  const DirectoryDataset gray = images({.label_mode = std::nullopt,
                                        .color_mode = "grayscale",
                                        .batch_size = std::nullopt,
                                        .image_size = {2, 2},
                                        .shuffle = false,
                                        .interpolation = "nearest",
                                        .crop_to_aspect_ratio = true});
  EXPECT_EQ(str(gray.element_spec()), "TensorSpec(shape=(2, 2, 1), dtype=uint8)");
  EXPECT_THAT(data::texts(gray)[1], "[[[10], [10]], [[10], [10]]]");
}

TEST_F(ImageDirectory, SplitsAndResumes) {
  const auto [training, validation] = image_datasets_from_directory(
      path("images"), {.image_size = {2, 2}, .seed = 1, .validation_split = 0.4, .subset = "both"});
  EXPECT_EQ(training.file_paths().size(), 3u);
  EXPECT_EQ(validation.file_paths().size(), 2u);
  data::expect_resumable([&] {
    return images({.batch_size = 2, .image_size = {1, 1}, .seed = 5});
  });
}

TEST_F(ImageDirectory, WrongOptionsAndFilesAreRefused) {
  const auto refused = [&](const ImageOptions& options, const char* text) {
    EXPECT_THAT(thrown<InvalidArgumentError>([&] { images(options); }), HasSubstr(text));
  };
  refused({.color_mode = "cmyk"}, "color_mode is 'cmyk'");
  refused({.image_size = {0, 3}}, "image_size is [0,3]");
  refused({.interpolation = "best"}, "interpolation is 'best'");
  write("images/a/0.png", "no picture");
  const auto outcomes =
      data::outcomes(images({.batch_size = std::nullopt, .image_size = {1, 1}, .shuffle = false}));
  ASSERT_EQ(outcomes.size(), 5u) << "one element fails, and no other";
  EXPECT_THAT(outcomes[0], HasSubstr("images/a/0.png"));
}

}  // namespace
}  // namespace cohort::keras::utils
