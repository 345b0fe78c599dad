// Layers of categories where programs put them: in datasets, in models, under a strategy, in files.
#include <ATen/ops/arange.h>
#include <ATen/ops/ones.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "cohort/core/structure/ragged_tensor.h"
#include "cohort/core/testing_folder.h"
#include "cohort/data/dataset.h"
#include "cohort/distribute/input/distributed_dataset.h"
#include "cohort/distribute/strategies/mirrored_strategy.h"
#include "cohort/distribute/testing_devices.h"
#include "cohort/keras/layers/dense.h"
#include "cohort/keras/layers/lookup/string_lookup.h"
#include "cohort/keras/layers/merging.h"
#include "cohort/keras/layers/preprocessing/category_encoding.h"
#include "cohort/keras/layers/preprocessing/discretization.h"
#include "cohort/keras/layers/preprocessing/hashed_crossing.h"
#include "cohort/keras/layers/preprocessing/hashing.h"
#include "cohort/keras/model/functional.h"
#include "cohort/keras/model/sequential.h"
#include "cohort/keras/saving/models.h"
#include "cohort/keras/testing_keras.h"

namespace cohort::keras {
namespace {

using data::Dataset;
using layers::CategoryEncoding;
using layers::Discretization;
using layers::HashedCrossing;
using layers::Hashing;
using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::string> printed(const Dataset& dataset) {
  std::vector<std::string> lines;
  for (const Structure& element : dataset) lines.push_back(internal::str(element));
  return lines;
}

TEST(PreprocessingInDatasets, MapsElementsBlocksAndBatches) {
  const auto all_agree = [](const Dataset& dataset, const layers::LayerHandle& layer,
                            const Tensor& expected) {
    const auto wanted = printed(Dataset::from_tensor_slices(expected));
    EXPECT_EQ(printed(dataset.map(layer)), wanted) << layer.name();
    EXPECT_EQ(printed(dataset.map(layer, {.vectorized = true})), wanted) << layer.name();
    EXPECT_EQ(printed(dataset.batch(3).map(layer).unbatch()), wanted) << layer.name();
  };
  const auto ints = [](const std::vector<double>& values) {
    return numbers(values, {static_cast<int64_t>(values.size())}, int64);
  };
  const StringTensor words({"A", "B", "C", "D", "E"});
  all_agree(Dataset::from_tensor_slices(words), Hashing(3), ints({1, 0, 1, 1, 2}));
  all_agree(Dataset::from_tensor_slices(
                tuple(StringTensor({"A", "B", "A", "B", "A"}), ints({101, 101, 101, 102, 102}))),
            HashedCrossing(5), ints({1, 4, 1, 1, 3}));
  all_agree(Dataset::from_tensor_slices(numbers({-1, 0, 5})),
            Discretization({.bin_boundaries = {0, 1}}), ints({0, 1, 2}));
  all_agree(Dataset::from_tensor_slices(numbers({0, 1, 2, 2}, {2, 2}, int64)), CategoryEncoding(3),
            numbers({1, 1, 0, 0, 0, 1}, {2, 3}));
}

TEST(PreprocessingInDatasets, RaggedBatches) {
  const Structure rows =
      RaggedTensor::from_row_lengths(StringTensor({"a", "z", "a", "b"}), {2, 0, 1, 1});
  const Dataset batches = Dataset::from_tensor_slices(rows).batch(2);
  const auto first = [&](const layers::LayerHandle& layer) {
    return batches.map(layer).iterator().get_next();
  };
  EXPECT_THAT(elements(RaggedTensor(first(Hashing(1))).row_splits()), ElementsAre(0, 2, 2));
  EXPECT_THAT(elements(first(Hashing(1, {.output_mode = "count"})).tensor()), ElementsAre(2, 0));
  // The lookups share the way of making outputs.
  const layers::StringLookup lookup({.vocabulary = {"a"}, .output_mode = "multi_hot"});
  EXPECT_THAT(elements(first(lookup).tensor()), ElementsAre(1, 1, 0, 0));
}

Functional model_of_all() {
  const SymbolicTensor city = Input({1}, {.name = "city", .dtype = cohort::string});
  const SymbolicTensor day = Input({1}, {.name = "day", .dtype = int64});
  const SymbolicTensor age = Input({1}, {.name = "age"});
  const Discretization ages({.num_bins = 3, .output_mode = "one_hot", .name = "ages"});
  ages.adapt(at::arange(100));
  const SymbolicTensor features =
      layers::Concatenate()({Hashing(4, {.salt = {1, 2}, .output_mode = "one_hot"})(city),
                             HashedCrossing(5, {.output_mode = "one_hot"})({city, day}), ages(age),
                             CategoryEncoding(7)(day)});
  return Functional({city, day, age}, {features, layers::Dense(2)(features)});
}

Structure rows_of_all() {
  return tuple(StringTensor({"Bern", "Graz"}, {2, 1}), numbers({3, 6}, {2, 1}, int64),
               numbers({10, 90}, {2, 1}));
}

TEST(PreprocessingInModels, CrossesStringsAndNumbers) {
  const Functional model = model_of_all();
  const Structure out = model(rows_of_all());
  EXPECT_THAT(out[0].tensor().sizes(), ElementsAre(2, 4 + 5 + 3 + 7));
  EXPECT_THAT(elements(out[0].tensor().sum(1)), ElementsAre(4, 4));
  EXPECT_EQ(out[0].tensor()[0][9].item<float>(), 1);   // the first third of the ages
  EXPECT_EQ(out[0].tensor()[1][11].item<float>(), 1);  // the last
}

TEST(PreprocessingInModels, AreSavedWithWhatTheyLearned) {
  const internal::TemporaryFolder folder;
  const Functional model = model_of_all();
  model.save(folder / "model");
  const ModelHandle again = models::load_model(folder / "model");
  const Structure wanted = model(rows_of_all()), found = again(rows_of_all());
  EXPECT_TRUE(found[0].tensor().equal(wanted[0].tensor()));
  EXPECT_TRUE(found[1].tensor().equal(wanted[1].tensor()));
}

// A layer that has not learned yet can be part of a model, with a column for each bin to come.
TEST(PreprocessingInModels, PlaceholdersAreInNoBin) {
  const SymbolicTensor x = Input({1});
  const Discretization learning({.num_bins = 4, .output_mode = "one_hot"});
  const Functional model(x, layers::Dense(1)(learning(x)));
  EXPECT_THROW(model(at::ones({2, 1})), FailedPreconditionError);
  learning.adapt(at::arange(100));
  EXPECT_THAT(model(at::ones({2, 1})).sizes(), ElementsAre(2, 1));
}

TEST(PreprocessingInModels, WeightsOfCountsAreNamedInJson) {
  const SymbolicTensor ids = Input({2}, {.name = "ids", .dtype = int64});
  const SymbolicTensor weights = Input({2}, {.name = "weights"});
  const Functional model({ids, weights},
                         CategoryEncoding(3, {.output_mode = "count"})({ids, weights}));
  const std::string json = model.to_json();
  EXPECT_THAT(json, HasSubstr(R"([["ids",0,0,{"count_weights":["weights",0,0]}]])"));
  const ModelHandle again = models::model_from_json(json);
  const Structure out = again(tuple(numbers({0, 2}, {1, 2}, int64), numbers({.5, 2}, {1, 2})));
  EXPECT_THAT(elements(out.tensor()), ElementsAre(.5, 0, 2));
}

TEST(PreprocessingInModels, SequentialsBeginWithThem) {
  const Sequential model({layers::InputLayer({2}, {.dtype = cohort::string}),
                          Hashing(1, {.output_mode = "count"}),
                          layers::Dense(1, {.kernel_initializer = "ones"})});
  EXPECT_THAT(elements(model(StringTensor({"a", "b", "c", "d"}, {2, 2})).tensor()),
              ElementsAre(2, 2));
}

TEST(PreprocessingUnderAStrategy, ServesAllReplicas) {
  const distribute::LogicalCpus devices(4);
  distribute::MirroredStrategy strategy;
  std::optional<Discretization> bins;
  std::optional<Functional> model;
  {
    auto scope = strategy.scope();
    bins.emplace(layers::DiscretizationOptions{.num_bins = 4, .epsilon = 0.1});
    const SymbolicTensor word = Input({}, {.dtype = cohort::string});
    const SymbolicTensor number = Input({});
    model.emplace(SymbolicStructure({word, number}),
                  SymbolicStructure({Hashing(3)(word), (*bins)(number)}));
  }
  bins->adapt(at::arange(100));
  const Dataset rows = Dataset::from_tensor_slices(
                           tuple(StringTensor({"A", "B", "D", "E"}), numbers({0, 30, 60, 90})))
                           .batch(4);
  auto iterator = strategy.experimental_distribute_dataset(rows).iterator();
  const auto found = strategy.run(
      [&](const Structure& batch) {
        EXPECT_THAT(thrown<FailedPreconditionError>([&] { bins->adapt(at::ones({2})); }),
                    HasSubstr("in a step"));
        const Structure out = (*model)(batch);
        return out[0].tensor() * 10 + out[1].tensor();
      },
      iterator.get_next());
  for (size_t r = 0; r < 4; ++r) {
    EXPECT_THAT(elements(found.value(r)), ElementsAre(std::vector{10, 1, 12, 23}[r]));
  }
}

}  // namespace
}  // namespace cohort::keras
