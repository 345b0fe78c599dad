#include "cohort/keras/datasets/image_files.h"

#include <gmock/gmock.h>

#include <cstdlib>

#include "cohort/core/error.h"
#include "cohort/keras/datasets/download.h"
#include "cohort/keras/datasets/fashion_mnist.h"
#include "cohort/keras/datasets/mnist.h"
#include "cohort/keras/datasets/testing_files.h"

namespace cohort::internal {
namespace {

using keras::datasets::LoadOptions;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

std::string images_file(uint32_t count, uint32_t side = 28) {
  std::string pixels(count * side * side, '\0');
  for (size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<char>(i % 251);
  return make_idx({count, side, side}, pixels);
}
std::string labels_file(uint32_t count) {
  std::string labels;
  for (uint32_t i = 0; i < count; ++i) labels += static_cast<char>(i % 10);
  return make_idx({count}, labels);
}

class ImageFilesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ::setenv("no_proxy", "127.0.0.1", 1);
    write("train-images-idx3-ubyte", images_file(3));
    write("train-labels-idx1-ubyte", labels_file(3));
    write("t10k-images-idx3-ubyte", images_file(2));
    write("t10k-labels-idx1-ubyte", labels_file(2));
  }
  void write(const std::string& name, const std::string& bytes) {
    folder_.write("data/" + name + ".gz", gzip(bytes));
  }

  std::string data() const { return folder_ / "data"; }
  // The data folder as if it were published there.
  PublishedImages published() const {
    const auto file = [](const std::string& name, const std::string& bytes) {
      return PublishedFile{name, md5_of(gzip(bytes))};
    };
    return {.name = "tiny",
            .base_url = "file://" + data() + "/",
            .train_images = file("train-images-idx3-ubyte", images_file(3)),
            .train_labels = file("train-labels-idx1-ubyte", labels_file(3)),
            .test_images = file("t10k-images-idx3-ubyte", images_file(2)),
            .test_labels = file("t10k-labels-idx1-ubyte", labels_file(2))};
  }

  const TemporaryFolder folder_;
};

TEST_F(ImageFilesTest, LoadsFromADirectory) {
  auto [train, test] = keras::datasets::fashion_mnist::load_data({.directory = data()});
  EXPECT_EQ(train.images.sizes(), (std::vector<int64_t>{3, 28, 28}));
  EXPECT_EQ(train.images.scalar_type(), uint8);
  EXPECT_EQ(train.labels.sizes(), (std::vector<int64_t>{3}));
  EXPECT_EQ(train.labels.scalar_type(), uint8);
  EXPECT_EQ(test.images.sizes(), (std::vector<int64_t>{2, 28, 28}));
  EXPECT_EQ(train.labels.data_ptr<uint8_t>()[2], 2);
  EXPECT_EQ(train.images.data_ptr<uint8_t>()[2 * 784 + 5], (2 * 784 + 5) % 251);
}

TEST_F(ImageFilesTest, TakesPlainFilesToo) {
  std::filesystem::remove(data() + "/train-images-idx3-ubyte.gz");
  folder_.write("data/train-images-idx3-ubyte", images_file(3));
  EXPECT_EQ(keras::datasets::mnist::load_data({.directory = data()}).train.images.size(0), 3);
}

TEST_F(ImageFilesTest, AMissingFileIsNotFound) {
  std::filesystem::remove(data() + "/t10k-labels-idx1-ubyte.gz");
  EXPECT_THAT([&] { keras::datasets::mnist::load_data({.directory = data()}); },
              ThrowsMessage<NotFoundError>(
                  AllOf(HasSubstr(data()), HasSubstr("neither t10k-labels-idx1-ubyte.gz nor"))));
}

TEST_F(ImageFilesTest, DifferentNumbersNameBothFiles) {
  write("train-labels-idx1-ubyte", labels_file(4));
  EXPECT_THAT([&] { keras::datasets::mnist::load_data({.directory = data()}); },
              ThrowsMessage<InvalidArgumentError>(
                  AllOf(HasSubstr("train-images-idx3-ubyte.gz holds 3 images"),
                        HasSubstr("train-labels-idx1-ubyte.gz holds 4 labels"))));
}

TEST_F(ImageFilesTest, OtherImageSizesAreDataLoss) {
  write("t10k-images-idx3-ubyte", images_file(2, 27));
  EXPECT_THAT([&] { keras::datasets::mnist::load_data({.directory = data()}); },
              ThrowsMessage<DataLossError>(HasSubstr("27 x 27")));
}

TEST_F(ImageFilesTest, ACorruptFileIsDataLossAndNamesIt) {
  folder_.write("data/train-labels-idx1-ubyte.gz", "\x1f\x8b garbage");
  EXPECT_THAT(
      [&] { keras::datasets::mnist::load_data({.directory = data()}); },
      ThrowsMessage<DataLossError>(AllOf(HasSubstr("train-labels-idx1-ubyte.gz, byte "),
                                         HasSubstr("the file is corrupt: a compression method"))));
}

TEST_F(ImageFilesTest, DownloadsIntoTheCacheOnce) {
  const LoadOptions options = {.cache_directory = folder_ / "cache"};
  EXPECT_EQ(load_published_images(published(), options).train.images.size(0), 3);
  EXPECT_TRUE(std::filesystem::exists(folder_ / "cache/tiny/train-images-idx3-ubyte.gz"));
  // From now on the cache alone is used.
  const PublishedImages before = published();
  std::filesystem::remove_all(data());
  EXPECT_EQ(load_published_images(before, options).test.labels.size(0), 2);
}

TEST_F(ImageFilesTest, AWrongDownloadIsDataLoss) {
  write("train-images-idx3-ubyte", images_file(4));
  EXPECT_THROW(load_published_images(published(), {.cache_directory = folder_ / "cache"}),
               DataLossError);
  EXPECT_FALSE(std::filesystem::exists(folder_ / "cache/tiny/train-images-idx3-ubyte.gz"));
}

TEST_F(ImageFilesTest, WithoutANetworkItSaysWhatToDo) {
  PublishedImages unreachable = published();
  unreachable.base_url = "http://127.0.0.1:1/";
  EXPECT_THAT([&] { load_published_images(unreachable, {.cache_directory = folder_ / "cache"}); },
              ThrowsMessage<UnavailableError>(
                  AllOf(HasSubstr("http://127.0.0.1:1/train-images-idx3-ubyte.gz"),
                        HasSubstr("LoadOptions.directory"))));
}

TEST_F(ImageFilesTest, DownloadsNothingWhereThatIsOff) {
  EXPECT_THAT(
      [&] {
        load_published_images(published(),
                              {.cache_directory = folder_ / "cache", .download = false});
      },
      ThrowsMessage<NotFoundError>(HasSubstr("cache/tiny/train-images-idx3-ubyte.gz is missing")));
}

}  // namespace
}  // namespace cohort::internal
