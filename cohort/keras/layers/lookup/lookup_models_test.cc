// Lookup layers where guides 000 and 001 put them: in datasets, in models of strings and dicts,
// under a strategy.
#include <ATen/ops/arange.h>
#include <ATen/ops/ones.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "cohort/data/dataset.h"
#include "cohort/distribute/input/distributed_dataset.h"
#include "cohort/distribute/strategies/mirrored_strategy.h"
#include "cohort/distribute/testing_devices.h"
#include "cohort/keras/layers/dense.h"
#include "cohort/keras/layers/embedding.h"
#include "cohort/keras/layers/lookup/integer_lookup.h"
#include "cohort/keras/layers/lookup/string_lookup.h"
#include "cohort/keras/model/functional.h"
#include "cohort/keras/model/sequential.h"
#include "cohort/keras/testing_keras.h"

namespace cohort::keras {
namespace {

using data::Dataset;
using layers::IntegerLookup;
using layers::StringLookup;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::string> texts(const Dataset& dataset) {
  std::vector<std::string> texts;
  for (const Structure& element : dataset) texts.push_back(internal::str(element));
  return texts;
}

TEST(LookupInDatasets, MapsElementsBlocksAndBatches) {
  const StringLookup layer({.vocabulary = {"a", "b"}});
  const Dataset words = Dataset::from_tensor_slices(StringTensor({"b", "z", "a", "b"}));
  const auto expected = texts(Dataset::from_tensor_slices(numbers({2, 0, 1, 2}, {4}, int64)));
  EXPECT_EQ(texts(words.map(layer)), expected);
  EXPECT_EQ(texts(words.map(layer, {.vectorized = true})), expected);
  EXPECT_EQ(texts(words.batch(3).map(layer).unbatch()), expected);
  EXPECT_EQ(words.map(layer).element_spec(), TensorSpec(std::vector<int64_t>{}, int64));
  EXPECT_EQ(words.batch(3).map(layer).element_spec(), TensorSpec({{kUnknownDim}}, int64));
}

TEST(LookupInDatasets, AnErrorNamesTheElement) {
  const StringLookup layer({.vocabulary = {"a"}, .num_oov_indices = 0});
  auto iterator = Dataset::from_tensor_slices(StringTensor({"a", "z", "a"})).map(layer).iterator();
  iterator.get_next();
  EXPECT_THAT(thrown<InvalidArgumentError>([&] { iterator.get_next(); }),
              AllOf(HasSubstr("element 1"), HasSubstr("['z']")));
  EXPECT_THAT(elements(iterator.get_next().tensor()), ElementsAre(0));
}

TEST(StringInputs, ModelsOfStrings) {
  const SymbolicTensor words = Input({3}, {.name = "words", .dtype = cohort::string});
  EXPECT_TRUE(words.spec().is_string());
  const StringLookup lookup({.vocabulary = {"a", "b"}});
  const SymbolicTensor ids = lookup(words);
  EXPECT_EQ(ids.spec(), TensorSpec({{kUnknownDim, 3}}, int64));
  const Functional model(words, layers::Embedding(lookup.vocabulary_size(), 2)(ids));
  const Structure out = model(StringTensor({"a", "z", "b", "b", "b", "a"}, {2, 3}));
  EXPECT_THAT(out.tensor().sizes(), ElementsAre(2, 3, 2));
  EXPECT_THAT(model.trainable_variables().size(), 1u);
  EXPECT_THAT(thrown<InvalidArgumentError>([&] {
                model(at::ones({2, 3}));
              }),
              AllOf(HasSubstr("'words'"), HasSubstr("string"), HasSubstr("float32 [2,3]")));
}

// A layer that refuses what is out of vocabulary, or has not learned yet, can be part of a model.
TEST(StringInputs, PlaceholdersAreNotLookedUp) {
  const SymbolicTensor word = Input({1}, {.dtype = cohort::string});
  const StringLookup strict({.vocabulary = {"yes", "no"}, .num_oov_indices = 0});
  const Functional model(word, strict(word));
  EXPECT_THAT(elements(model(StringTensor({"no"}, {1, 1})).tensor()), ElementsAre(1));
  const StringLookup learning;
  const Functional unlearned(word, learning(word));
  EXPECT_THROW(unlearned(StringTensor({"no"}, {1, 1})), FailedPreconditionError);
  learning.adapt(StringTensor({"no"}));
  EXPECT_THAT(elements(unlearned(StringTensor({"no"}, {1, 1})).tensor()), ElementsAre(1));
}

TEST(StringInputs, StringsComeOut) {
  const SymbolicTensor ids = Input({2}, {.dtype = int64});
  const StringLookup inverse({.vocabulary = {"a", "b"}, .invert = true});
  const SymbolicTensor words = inverse(ids);
  EXPECT_EQ(words.spec(), TensorSpec::strings({{kUnknownDim, 2}}));
  EXPECT_EQ(Functional(ids, words)(Structure(numbers({1, 2}, {1, 2}, int64))).strings(),
            StringTensor({"a", "b"}, {1, 2}));
}

TEST(StringInputs, DictsOfStringsAndNumbersInAndOut) {
  const SymbolicTensor word = Input({1}, {.name = "word", .dtype = cohort::string});
  const SymbolicTensor code = Input({1}, {.name = "code", .dtype = int64});
  const Functional model(
      SymbolicStructure::make_dict({{"word", word}, {"code", code}}),
      SymbolicStructure::make_dict(
          {{"word_id", SymbolicStructure(StringLookup({.vocabulary = {"a", "b"}})(word))},
           {"code_id", SymbolicStructure(IntegerLookup({.vocabulary = {7}})(code))},
           {"word", word}}));
  const Structure rows = dict({{"code", numbers({7, 8}, {2, 1}, int64)},
                               {"word", StringTensor({"b", "c"}, {2, 1})},
                               {"unused", at::ones({2})}});
  const Structure out = model(rows);
  EXPECT_THAT(elements(out["word_id"].tensor()), ElementsAre(2, 0));
  EXPECT_THAT(elements(out["code_id"].tensor()), ElementsAre(1, 0));
  EXPECT_THAT(out["word"].strings().to_vector(), ElementsAre("b", "c"));
  // In a pipeline, on batches.
  const Dataset dataset = Dataset::from_tensor_slices(rows).batch(2).map(model);
  EXPECT_THAT(elements(dataset.iterator().get_next()["word_id"].tensor()), ElementsAre(2, 0));
}

// Inputs that are not a dict are found by their names, too.
TEST(StringInputs, DictsFitTuplesByName) {
  const SymbolicTensor a = Input({1}, {.name = "a"});
  const SymbolicTensor b = Input({1}, {.name = "b"});
  const Functional model({a, b}, {b, a});
  const Structure out = model(dict({{"b", numbers({2}, {1, 1})}, {"a", numbers({1}, {1, 1})}}));
  EXPECT_THAT(elements(out[0].tensor()), ElementsAre(2));
  EXPECT_THAT(elements(out[1].tensor()), ElementsAre(1));
}

// Guide 001: models with a dict of one input, called in a map with that input's value for one
// example, without a batch dimension.
TEST(StringInputs, Guide001PreprocessesExamples) {
  const StringLookup feature_lookup({.vocabulary = {"avenger", "ironman", "batman", "hulk",
                                                    "spiderman", "kingkong", "wonder_woman"},
                                     .mask_token = std::nullopt});
  const StringLookup label_lookup(
      {.vocabulary = {"yes", "no"}, .num_oov_indices = 0, .mask_token = std::nullopt});
  const SymbolicTensor raw_feature = Input({3}, {.name = "feature", .dtype = cohort::string});
  const Functional feature_stage(SymbolicStructure::make_dict({{"features", raw_feature}}),
                                 feature_lookup(raw_feature));
  const SymbolicTensor raw_label = Input({1}, {.name = "label", .dtype = cohort::string});
  const Functional label_stage(SymbolicStructure::make_dict({{"label", raw_label}}),
                               label_lookup(raw_label));
  const Structure examples =
      dict({{"features",
             StringTensor({"batman", "hulk", "avenger", "ironman", "joker", "hulk"}, {2, 3})},
            {"label", StringTensor({"yes", "no"}, {2, 1})}});
  const Dataset dataset = Dataset::from_tensor_slices(examples)
                              .map([&](const Structure& x) {
                                return tuple(dict({{"features", feature_stage(x["features"])}}),
                                             label_stage(x["label"]));
                              })
                              .batch(2);
  const Structure batch = dataset.iterator().get_next();
  EXPECT_THAT(elements(batch[0]["features"].tensor()), ElementsAre(3, 4, 1, 2, 0, 4));
  EXPECT_THAT(batch[0]["features"].tensor().sizes(), ElementsAre(2, 3));
  EXPECT_THAT(elements(batch[1].tensor()), ElementsAre(0, 1));
  EXPECT_THAT(batch[1].tensor().sizes(), ElementsAre(2, 1, 1));  // as Keras adds a dimension
}

TEST(StringInputs, SequentialsBeginWithThem) {
  const Sequential model({layers::InputLayer({2}, {.dtype = cohort::string}),
                          StringLookup({.vocabulary = {"a"}, .output_mode = "count"}),
                          layers::Dense(1, {.kernel_initializer = "ones"})});
  EXPECT_THAT(elements(model(StringTensor({"a", "a", "z", "a"}, {2, 2})).tensor()),
              ElementsAre(2, 2));
}

TEST(LookupUnderAStrategy, ServesAllReplicas) {
  const distribute::LogicalCpus devices(4);
  distribute::MirroredStrategy strategy;
  std::optional<StringLookup> layer;
  std::optional<Functional> model;
  {
    auto scope = strategy.scope();
    layer.emplace(layers::StringLookupOptions{.vocabulary = {"a", "b", "c", "d", "f"}});
    const SymbolicTensor word = Input({}, {.dtype = cohort::string});
    model.emplace(word, (*layer)(word));
  }
  const Dataset words = Dataset::from_tensor_slices(StringTensor({"a", "c", "e"})).repeat();
  // In the dataset.
  std::vector<double> ids;
  auto mapped = strategy.experimental_distribute_dataset(words.batch(4).map(*layer)).iterator();
  for (int i = 0; i < 3; ++i) {
    const auto batch = mapped.get_next();
    for (size_t r = 0; r < 4; ++r) ids.push_back(elements(batch.value(r).tensor())[0]);
  }
  EXPECT_THAT(ids, ElementsAre(1, 3, 0, 1, 3, 0, 1, 3, 0, 1, 3, 0));
  // In a model, in the step.
  auto strings = strategy.experimental_distribute_dataset(words.batch(4)).iterator();
  const auto found = strategy.run([&](const Structure& batch) { return (*model)(batch).tensor(); },
                                  strings.get_next());
  for (size_t r = 0; r < 4; ++r) {
    EXPECT_THAT(elements(found.value(r)), ElementsAre(std::vector{1, 3, 0, 1}[r]));
  }
}

}  // namespace
}  // namespace cohort::keras
