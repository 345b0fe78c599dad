#include "cohort/keras/layers/lookup/text_vectorization.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "cohort/core/testing_folder.h"
#include "cohort/data/dataset.h"
#include "cohort/keras/layers/layers.h"
#include "cohort/keras/model/functional.h"
#include "cohort/keras/testing_keras.h"
#include "cohort/train/checkpoint.h"

namespace cohort::keras {
namespace {

using layers::TextVectorization;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Rows of indices, or of a vector mode's numbers.
std::vector<double> vectorized(const TextVectorization& layer, const StringTensor& texts) {
  return elements(layer(Structure(texts)).tensor());
}

TEST(TextVectorization, GivesTheIndicesOfTheTokensOfEachText) {
  const TextVectorization layer({.vocabulary = {"the", "cat", "sat"}});
  const Structure indices = layer(Structure(StringTensor({"The CAT, sat!", "A  cat\t", ""})));
  EXPECT_EQ(indices.tensor().scalar_type(), int64);
  EXPECT_EQ(indices.tensor().sizes(), (std::vector<int64_t>{3, 3}));
  EXPECT_THAT(elements(indices.tensor()), ElementsAre(2, 3, 4, 1, 3, 0, 0, 0, 0));
  EXPECT_THAT(vectorized(layer, StringTensor({"cat"}).reshape({1, 1})), ElementsAre(3));
  EXPECT_THAT(layer.get_vocabulary(), ElementsAre("", "[UNK]", "the", "cat", "sat"));
  EXPECT_EQ(layer.vocabulary_size(), 5);
}

TEST(TextVectorization, TakesOneTextAlone) {
  const TextVectorization layer({.output_sequence_length = 3});
  layer.adapt(data::Dataset::from_tensor_slices(StringTensor({"a b", "b", "b c b"})));
  EXPECT_EQ(layer.get_vocabulary()[2], "b");
  const Tensor indices = layer(Structure(StringTensor({"b"}).reshape({}))).tensor();
  EXPECT_EQ(indices.sizes(), (std::vector<int64_t>{3}));
  EXPECT_THAT(elements(indices), ElementsAre(2, 0, 0));
}

TEST(TextVectorization, CutsOffOrFillsUpToALength) {
  const TextVectorization layer({.output_sequence_length = 2, .vocabulary = {"a", "b"}});
  EXPECT_THAT(vectorized(layer, {"a b a", "b"}), ElementsAre(2, 3, 3, 0));
}

TEST(TextVectorization, StandardizesAndSplitsAsItIsTold) {
  const StringTensor text({"It's Ä-b"});
  const auto tokens = [&](layers::TextVectorizationOptions options) {
    const TextVectorization layer(std::move(options));
    layer.adapt(text);
    std::vector<std::string> learned = layer.get_vocabulary(false);
    std::sort(learned.begin(), learned.end());
    return learned;
  };
  EXPECT_THAT(tokens({}), ElementsAre("its", "Äb"));
  EXPECT_THAT(tokens({.standardize = "lower"}), ElementsAre("it's", "Ä-b"));
  EXPECT_THAT(tokens({.standardize = "strip_punctuation"}), ElementsAre("Its", "Äb"));
  EXPECT_THAT(tokens({.standardize = nullptr, .split = nullptr}), ElementsAre("It's Ä-b"));
  EXPECT_THAT(tokens({.split = "character"}), ElementsAre(" ", "b", "i", "s", "t", "Ä"));
  EXPECT_THAT(tokens({.standardize =
                          [](const StringTensor& given) {
                            return StringTensor({"x y"}).reshape(given.sizes());
                          },
                      .split =
                          [](std::string_view whole) {
                            return std::vector<std::string>{std::string(whole), "z"};
                          }}),
              ElementsAre("x y", "z"));
}

TEST(TextVectorization, JoinsNeighbours) {
  const StringTensor text({"a b c", "d"});
  const TextVectorization up_to_two({.ngrams = 2, .vocabulary = {"a", "b c", "d"}});
  EXPECT_THAT(vectorized(up_to_two, text), ElementsAre(2, 1, 1, 1, 3, 4, 0, 0, 0, 0));
  const TextVectorization pairs({.ngrams = {2}, .vocabulary = {"a b", "b c"}});
  EXPECT_THAT(vectorized(pairs, text), ElementsAre(2, 3, 0, 0));
}

TEST(TextVectorization, CountsTokens) {
  const TextVectorization counts({.output_mode = "count", .vocabulary = {"a", "b"}});
  EXPECT_THAT(vectorized(counts, {"a b a z", "b"}), ElementsAre(1, 2, 1, 0, 0, 1));
  const TextVectorization weights(
      {.output_mode = "tf_idf", .vocabulary = {"a", "b"}, .idf_weights = {0.5, 2}});
  EXPECT_THAT(vectorized(weights, {"a a", "b"}), ElementsAre(0, 1, 0, 0, 0, 2));
}

TEST(TextVectorization, LearnsFromDatasetsByFrequency) {
  const auto texts =
      data::Dataset::from_tensor_slices(StringTensor({"the cat", "the dog", "the end, the"}));
  const TextVectorization layer({.max_tokens = 4});
  layer.adapt(texts.batch(2));
  EXPECT_THAT(layer.get_vocabulary(), ElementsAre("", "[UNK]", "the", "end"));
  const TextVectorization one_by_one({.max_tokens = 4});
  one_by_one.adapt(StringTensor({"the cat", "the dog", "the end, the"}));
  EXPECT_EQ(one_by_one.get_vocabulary(), layer.get_vocabulary());
  const TextVectorization documents({.output_mode = "tf_idf"});
  documents.adapt(texts.batch(2));
  EXPECT_EQ(vectorized(documents, {"the"}).size(), 5u);
}

TEST(TextVectorization, StandsInModelsAndCheckpoints) {
  const auto make = [] {
    const SymbolicTensor text = Input({1}, {.dtype = cohort::string});
    const TextVectorization layer;
    const auto indices = layer(text);
    EXPECT_THAT(indices.shape(), ElementsAre(kUnknownDim, kUnknownDim));
    const Functional model(text, layers::GlobalAveragePooling1D()(layers::Embedding(
                                     10, 2, {.embeddings_initializer = "ones"})(indices)));
    return std::pair(layer, model);
  };
  const auto [layer, model] = make();
  layer.adapt(StringTensor({"b b a"}));
  const internal::TemporaryFolder folder;
  const std::string path = folder / "weights";
  model.save_weights(path);
  const auto [other_layer, other] = make();
  other.load_weights(path);
  EXPECT_THAT(other_layer.get_vocabulary(false), ElementsAre("b", "a"));
  EXPECT_THAT(elements(other(Structure(StringTensor({"a b c"}))).tensor()), ElementsAre(1, 1));
}

TEST(TextVectorization, RefusesWhatIsWrong) {
  const auto refused = [](const layers::TextVectorizationOptions& options) {
    return thrown<InvalidArgumentError>([&] { TextVectorization layer(options); });
  };
  EXPECT_THAT(refused({.standardize = "upper"}), AllOf(HasSubstr("'upper'"), HasSubstr("'lower'")));
  EXPECT_THAT(refused({.split = "words"}), AllOf(HasSubstr("'words'"), HasSubstr("whitespace")));
  EXPECT_THAT(refused({.ngrams = {0}}), HasSubstr("length 0"));
  EXPECT_THAT(refused({.output_mode = "one_hot"}), HasSubstr("'one_hot'"));
  EXPECT_THAT(refused({.output_mode = "count", .output_sequence_length = 3}), HasSubstr("3"));
  const TextVectorization layer({.vocabulary = {"a"}, .name = "texts"});
  EXPECT_THAT(thrown<InvalidArgumentError>([&] { layer(numbers({1})); }),
              AllOf(HasSubstr("'texts'"), HasSubstr("strings")));
  EXPECT_THAT(thrown<InvalidArgumentError>([&] {
                layer(Structure(StringTensor({"a", "b"}).reshape({1, 2})));
              }),
              HasSubstr("[1,2]"));
  EXPECT_THAT(thrown<FailedPreconditionError>([&] { layer.adapt(StringTensor({"a"})); }),
              HasSubstr("cannot adapt"));
}

}  // namespace
}  // namespace cohort::keras
