// text_dataset_from_directory, and what it shares with images.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "cohort/core/testing_errors.h"
#include "cohort/data/test_util.h"
#include "cohort/data/testing_files.h"
#include "cohort/keras/datasets/numpy_shuffle.h"
#include "cohort/keras/datasets/text_dataset_from_directory.h"

namespace cohort::keras::utils {
namespace {

namespace fs = std::filesystem;
using internal::expect_error;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using Options = TextDatasetFromDirectoryOptions;

// Two classes; files also in directories below them, and some that are no texts.
struct TextDirectory : data::FilesTest {
  TextDirectory() {
    for (const char* name : {"texts", "texts/pos", "texts/neg", "texts/neg/sub", "texts/.hidden"}) {
      fs::create_directory(path(name));
    }
    write("texts/neg/b.txt", "bad");
    write("texts/neg/a.TXT", "awful");
    write("texts/neg/sub/c.txt", "worse");
    write("texts/neg/notes.md", "no text");
    write("texts/pos/d.txt", "good");
    write("texts/.hidden/e.txt", "not seen");
  }

  DirectoryDataset texts(const Options& options) const {
    return text_dataset_from_directory(path("texts"), options);
  }
  // The names of the files without the directory's.
  std::vector<std::string> names(const DirectoryDataset& dataset) const {
    std::vector<std::string> names;
    for (const std::string& file : dataset.file_paths()) {
      names.push_back(fs::relative(file, path("texts")));
    }
    return names;
  }
  void refused(const Options& options, const char* text) const {
    EXPECT_THAT(thrown<InvalidArgumentError>([&] { texts(options); }), HasSubstr(text));
  }
};

TEST_F(TextDirectory, InfersLabels) {
  const DirectoryDataset dataset = texts({.shuffle = false});
  EXPECT_THAT(dataset.class_names(), ElementsAre("neg", "pos"));
  EXPECT_THAT(names(dataset), ElementsAre("neg/a.TXT", "neg/b.txt", "neg/sub/c.txt", "pos/d.txt"));
  EXPECT_THAT(data::texts(dataset),
              ElementsAre(R"((["awful", "bad", "worse", "good"], [0, 0, 0, 1]))"));
  EXPECT_EQ(internal::str(dataset.element_spec()),
            "(TensorSpec(shape=(None,), dtype=string), TensorSpec(shape=(None,), dtype=int32))");
  const DirectoryDataset turned =
      texts({.class_names = {"pos", "neg"}, .batch_size = 3, .max_length = 2, .shuffle = false});
  EXPECT_THAT(data::texts(turned),
              ElementsAre(R"((["aw", "ba", "wo"], [1, 1, 1]))", R"((["go"], [0]))"));
}

TEST_F(TextDirectory, LabelsInEveryForm) {
  EXPECT_THAT(data::texts(texts({.label_mode = "binary", .shuffle = false})),
              ElementsAre(HasSubstr("[[0.0], [0.0], [0.0], [1.0]]")));
  EXPECT_THAT(data::texts(texts({.label_mode = "categorical", .shuffle = false})),
              ElementsAre(HasSubstr("[[1.0, 0.0], [1.0, 0.0], [1.0, 0.0], [0.0, 1.0]]")));
  const DirectoryDataset none =
      texts({.labels = std::nullopt, .batch_size = std::nullopt, .shuffle = false});
  EXPECT_THAT(none.class_names(), IsEmpty());
  // The hidden directory is none of a class, but a directory.
  EXPECT_THAT(data::texts(none),
              ElementsAre(R"("not seen")", R"("awful")", R"("bad")", R"("worse")", R"("good")"));
  EXPECT_EQ(data::texts(
                texts({.label_mode = std::nullopt, .batch_size = std::nullopt, .shuffle = false})),
            data::texts(none));
  const DirectoryDataset given = texts({.labels = {7, 5, 5, 9, 7}, .shuffle = false});
  EXPECT_THAT(given.class_names(), ElementsAre("5", "7", "9"));
  EXPECT_THAT(data::texts(given), ElementsAre(HasSubstr("[7, 5, 5, 9, 7]")));
}

TEST_F(TextDirectory, TrainingAndValidationAreApart) {
  const Options both = {.seed = 7, .validation_split = 0.5, .subset = "both"};
  const auto [training, validation] = text_datasets_from_directory(path("texts"), both);
  std::vector<std::string> all = names(training);
  for (const std::string& name : names(validation)) all.push_back(name);
  std::sort(all.begin(), all.end());
  EXPECT_EQ(all, names(texts({.shuffle = false})));
  Options one = both;
  one.subset = "training";
  EXPECT_EQ(names(texts(one)), names(training));
  one.subset = "validation";
  EXPECT_EQ(names(texts(one)), names(validation));
  data::expect_resumable([&] { return texts({.batch_size = 1, .seed = 3}); });
}

TEST_F(TextDirectory, LinksAreFollowedIfAsked) {
  fs::create_directory_symlink(path("texts/pos"), path("texts/neg/link"));
  fs::create_directory_symlink(path("texts/neg"), path("texts/neg/loop"));
  EXPECT_EQ(texts({.shuffle = false}).file_paths().size(), 4u);
  EXPECT_THAT(
      names(texts({.shuffle = false, .follow_links = true})),
      ElementsAre("neg/a.TXT", "neg/b.txt", HasSubstr("d.txt"), "neg/sub/c.txt", "pos/d.txt"));
}

TEST_F(TextDirectory, LabelsAreInferredOrListed) {
  expect_error<InvalidArgumentError>([] { const Options options{.labels = "guessed"}; },
                                     "labels are 'guessed'");
}

TEST_F(TextDirectory, WhatDoesNotFitIsRefused) {
  refused({.labels = {1, 2}}, "there are 2 labels, but 5 files");
  refused({.labels = {1, 2}, .class_names = {"a"}}, "class_names can be given with");
  refused({.label_mode = "one"}, "label_mode is 'one'");
  refused({.class_names = {"pos"}}, "class_names are ['pos'], but the sub-directories of");
  refused({.batch_size = 0}, "batch_size is 0");
  refused({.max_length = -1}, "max_length is -1");
  refused({.seed = 1, .validation_split = 1.5, .subset = "training"}, "between 0 and 1");
  refused({.seed = 1, .validation_split = 0.5}, "both or not at all");
  refused({.seed = 1, .validation_split = 0.5, .subset = "test"}, "subset is 'test'");
  refused({.seed = 1, .validation_split = 0.5, .subset = "both"}, "gives two datasets");
  refused({.validation_split = 0.5, .subset = "training"}, "need a seed");
  refused({.seed = 1, .validation_split = 0.1, .subset = "training"}, "leaves no file");
  refused({.labels = {1, 2, 3, 1, 1}, .label_mode = "binary"},
          "is for two classes, but there are 3");
  fs::create_directory(path("empty"));
  expect_error<InvalidArgumentError>([&] { text_dataset_from_directory(path("empty")); },
                                     "there are no files in");
  EXPECT_THAT(thrown<NotFoundError>([&] { text_dataset_from_directory(path("none")); }),
              HasSubstr("none"));
  const DirectoryDataset dataset = texts({.batch_size = 1, .shuffle = false});
  fs::remove(path("texts/neg/a.TXT"));
  EXPECT_THAT(data::outcomes(dataset)[0], HasSubstr("a.TXT"));
}

TEST(NumpyShuffle, IsNumPys) {
  // numpy.random.RandomState(seed).shuffle(list(range(n)))
  EXPECT_THAT(internal::numpy_shuffled(10, 42), ElementsAre(8, 1, 5, 0, 7, 2, 9, 4, 3, 6));
  EXPECT_THAT(internal::numpy_shuffled(1, 42), ElementsAre(0));
  EXPECT_THAT(internal::numpy_shuffled(0, 42), IsEmpty());
}

}  // namespace
}  // namespace cohort::keras::utils
