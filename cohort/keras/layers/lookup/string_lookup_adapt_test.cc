// What StringLookup learns, and how a checkpoint keeps it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

#include "cohort/data/dataset.h"
#include "cohort/keras/layers/lookup/string_lookup.h"
#include "cohort/keras/testing_keras.h"
#include "cohort/train/checkpoint.h"

namespace cohort::keras::layers {
namespace {

using data::Dataset;
using testing::AllOf;
using testing::DoubleNear;
using testing::ElementsAre;
using testing::HasSubstr;

std::vector<double> lookup(const StringLookup& layer, const StringTensor& words) {
  return elements(layer(Structure(words)).tensor());
}

TEST(StringLookupAdapt, OrdersByFrequencyThenFromZToA) {
  const StringLookup layer;
  layer.adapt(StringTensor({"a", "b", "c", "b", "c", "[UNK]", "", "\xff", "A"}));
  EXPECT_THAT(layer.get_vocabulary(), ElementsAre("[UNK]", "c", "b", "\xff", "a", "A", ""));
  EXPECT_THAT(lookup(layer, {"c", "zz"}), ElementsAre(1, 0));
}

TEST(StringLookupAdapt, KeepsTheMostFrequent) {
  const StringLookup layer({.mask_token = "", .max_tokens = 4});
  layer.adapt(Dataset::from_tensor_slices(
      StringTensor({"", "", "", "a", "b", "c", "b", "c", "c", "[UNK]"})));
  EXPECT_THAT(layer.get_vocabulary(), ElementsAre("", "[UNK]", "c", "b"));
}

TEST(StringLookupAdapt, TakesElementsOfAnyShape) {
  const Dataset words = Dataset::from_tensor_slices(StringTensor({"a", "b", "b", "c", "c", "c"}));
  for (const Dataset& dataset : {words, words.batch(4), words.batch(2).batch(2)}) {
    const StringLookup layer;
    layer.adapt(dataset);
    EXPECT_THAT(layer.get_vocabulary(false), ElementsAre("c", "b", "a"));
  }
}

TEST(StringLookupAdapt, ForgetsWhatItLearnedBefore) {
  const StringLookup layer;
  layer.adapt(StringTensor({"a", "a", "b"}));
  layer.adapt(StringTensor({"b", "c", "c"}));
  EXPECT_THAT(layer.get_vocabulary(false), ElementsAre("c", "b"));
  layer.set_vocabulary({"x"});
  layer.adapt(StringTensor({"y"}));
  EXPECT_THAT(layer.get_vocabulary(false), ElementsAre("y"));
}

TEST(StringLookupAdapt, TakesAsManyStepsAsAsked) {
  const StringLookup layer;
  const Dataset endless = Dataset::from_tensor_slices(StringTensor({"a", "b", "c"})).repeat();
  layer.adapt(endless, {.steps = 2});
  EXPECT_THAT(layer.get_vocabulary(false), ElementsAre("b", "a"));
  EXPECT_THAT(thrown<InvalidArgumentError>([&] { layer.adapt(endless); }), HasSubstr(".steps"));
}

TEST(StringLookupAdapt, IsRefusedWhereItCannotWork) {
  const StringLookup with_vocabulary({.vocabulary = {"a"}, .name = "words"});
  EXPECT_THAT(thrown<FailedPreconditionError>([&] { with_vocabulary.adapt(StringTensor({"a"})); }),
              AllOf(HasSubstr("'words'"), HasSubstr("made with a vocabulary")));
  const StringLookup layer;
  EXPECT_THROW(layer.adapt(Dataset::range(3)), InvalidArgumentError);
  EXPECT_THROW(layer.adapt(StringTensor()), InvalidArgumentError);
  EXPECT_THROW(layer.adapt(Dataset::from_tensors(tuple(StringTensor({"a"}), StringTensor({"b"})))),
               InvalidArgumentError);
  EXPECT_THROW(layer.adapt(StringTensor({"a"}), {.batch_size = 0}), InvalidArgumentError);
  // None of these changed it.
  EXPECT_THAT(layer.get_vocabulary(false), ElementsAre());
}

TEST(StringLookupAdapt, VectorsKeepTheirLength) {
  const StringLookup layer({.output_mode = "count"});
  EXPECT_THROW(lookup(layer, {"a"}), FailedPreconditionError);
  layer.adapt(StringTensor({"a", "b"}));
  EXPECT_THAT(lookup(layer, {"b", "q", "b"}), ElementsAre(1, 2, 0));
  EXPECT_THROW(layer.adapt(StringTensor({"a", "b", "c"})), FailedPreconditionError);
  EXPECT_THAT(lookup(layer, {"b", "q", "b"}), ElementsAre(1, 2, 0));
}

TEST(StringLookupAdapt, LearnsInverseDocumentFrequencies) {
  const StringLookup layer({.output_mode = "tf_idf"});
  layer.adapt(StringTensor({"a", "b", "b", "c", "b", "d"}, {2, 3}));
  EXPECT_THAT(layer.get_vocabulary(false), ElementsAre("b", "d", "c", "a"));
  const double in_both = std::log(1 + 2.0 / 3);
  const double in_one = std::log(1 + 2.0 / 2);
  EXPECT_THAT(lookup(layer, {"b", "a", "b", "z"}),
              ElementsAre(DoubleNear(((in_both + 3 * in_one) / 4), 1e-6),
                          DoubleNear((2 * in_both), 1e-6), 0, 0, DoubleNear((in_one), 1e-6)));
}

class StringLookupCheckpoint : public testing::Test {
 protected:
  StringLookupCheckpoint() {
    std::string pattern = testing::TempDir() + "string_lookup.XXXXXX";
    directory_ = ::mkdtemp(pattern.data());
  }
  ~StringLookupCheckpoint() override { std::filesystem::remove_all(directory_); }

  std::string save(const StringLookup& layer) const {
    return train::Checkpoint({{"layer", layer}}).save(directory_ + "/ckpt");
  }

  std::string directory_;
};

TEST_F(StringLookupCheckpoint, KeepsWhatWasLearned) {
  const StringLookup layer({.mask_token = ""});
  layer.adapt(StringTensor({"a", "b", "b"}));
  const std::string path = save(layer);
  const StringLookup restored({.mask_token = ""});
  train::Checkpoint({{"layer", restored}}).restore(path).assert_consumed();
  EXPECT_THAT(restored.get_vocabulary(), ElementsAre("", "[UNK]", "b", "a"));
  EXPECT_THAT(lookup(restored, {"a", ""}), ElementsAre(3, 0));
}

TEST_F(StringLookupCheckpoint, KeepsTfIdf) {
  const StringLookup layer({.output_mode = "tf_idf"});
  layer.adapt(StringTensor({"a", "b", "b", "c"}, {2, 2}));
  const std::string path = save(layer);
  const StringLookup restored({.output_mode = "tf_idf"});
  train::Checkpoint({{"layer", restored}}).restore(path).assert_consumed();
  EXPECT_EQ(lookup(restored, {"a", "b", "z", "b"}), lookup(layer, {"a", "b", "z", "b"}));
}

TEST_F(StringLookupCheckpoint, LeavesAGivenVocabularyToTheProgram) {
  const std::string path = save(StringLookup({.vocabulary = {"a"}}));
  const StringLookup other({.vocabulary = {"b"}});
  train::Checkpoint({{"layer", other}}).restore(path).assert_existing_objects_matched();
  EXPECT_THAT(other.get_vocabulary(false), ElementsAre("b"));
}

TEST_F(StringLookupCheckpoint, RefusesWhatDoesNotFit) {
  const StringLookup layer;
  layer.adapt(StringTensor({"a", "b", "c"}));
  const std::string path = save(layer);
  const StringLookup smaller({.max_tokens = 2});
  train::Checkpoint checkpoint({{"layer", smaller}});
  EXPECT_THAT(thrown<InvalidArgumentError>([&] { checkpoint.restore(path); }),
              HasSubstr("max_tokens is 2"));
  EXPECT_THAT(smaller.get_vocabulary(false), ElementsAre());
}

}  // namespace
}  // namespace cohort::keras::layers
