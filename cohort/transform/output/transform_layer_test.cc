// Transforms as layers: in datasets, in models, under strategies.
#include <ATen/ops/tensor.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cohort/core/testing_errors.h"
#include "cohort/distribute/input/distributed_dataset.h"
#include "cohort/distribute/strategies/mirrored_strategy.h"
#include "cohort/distribute/testing_devices.h"
#include "cohort/keras/keras.h"
#include "cohort/transform/functions/column_functions.h"
#include "cohort/transform/functions/mappers.h"
#include "cohort/transform/testing_columns.h"

namespace cohort::transform {
namespace {

namespace layers = keras::layers;
using internal::expect_error;
using internal::TemporaryFolder;
using testing::ElementsAre;

Structure people() {
  return dict({{"age", at::tensor({20.F, 30.F, 40.F, 60.F})},
               {"city", StringTensor({"Rome", "Oslo", "Rome", "Paris"})}});
}

Columns preprocess(const Columns& inputs) {
  return {{"age", scale_to_0_1(inputs["age"])},
          {"city", compute_and_apply_vocabulary(inputs["city"], {.num_oov_buckets = 1})}};
}

keras::Functional model_of(const TFTransformOutput& output) {
  auto age = keras::Input({}, {.name = "age"});
  auto city = keras::Input({}, {.name = "city", .dtype = cohort::string});
  auto features = output.transform_features_layer()(
      keras::SymbolicStructure::make_dict({{"age", age}, {"city", city}}));
  auto both = layers::Concatenate()(
      {layers::Reshape({1})(features["age"]), layers::Embedding(4, 2)(features["city"])});
  return {{age, city}, layers::Dense(1)(both)};
}

TEST(TransformLayer, MapsBatches) {
  const TemporaryFolder folder;
  const auto [dataset, output] =
      analyze_and_transform_dataset(batches(people()), preprocess, folder / "output");
  std::vector<double> ages, cities;
  for (const Structure& batch : dataset) {
    for (const double age : numbers(batch["age"])) ages.push_back(age);
    for (const double city : numbers(batch["city"])) cities.push_back(city);
  }
  EXPECT_THAT(ages, ElementsAre(0, .25, .5, 1));
  EXPECT_THAT(cities, ElementsAre(0, 2, 0, 1));
}

TEST(TransformLayer, IsAPartOfAModelThatIsSavedAndRead) {
  const TemporaryFolder folder;
  const auto output = analyze_dataset(batches(people()), preprocess, folder / "output");
  const auto model = model_of(output);
  const auto before = numbers(model(people()));
  EXPECT_EQ(before.size(), 4);
  model.save(folder / "model");
  const auto read =
      keras::models::load_model(folder / "model", {.custom_objects = custom_objects()});
  EXPECT_EQ(numbers(read(people())), before);
  analyze_dataset(
      batches(people()),
      [](const Columns& inputs) {
        return Columns{{"age", inputs["age"] / 60}, {"city", hash_strings(inputs["city"], 3)}};
      },
      folder / "output", {.overwrite = true});
  expect_error<FailedPreconditionError>(
      [&] { keras::models::load_model(folder / "model", {.custom_objects = custom_objects()}); },
      "saved with another transform");
}

TEST(TransformLayer, ServesAllReplicas) {
  const TemporaryFolder folder;
  const auto output = analyze_dataset(batches(people()), preprocess, folder / "output");
  const distribute::LogicalCpus cpus(2);
  const distribute::MirroredStrategy strategy;
  auto scope = strategy.scope();
  const auto layer = output.transform_features_layer();
  scope.close();
  const auto dataset = data::Dataset::from_tensor_slices(people()).batch(4);
  std::vector<double> cities;
  for (const auto& batch : strategy.experimental_distribute_dataset(dataset)) {
    const auto result = strategy.run(
        [&](const Structure& columns) { return layer(columns)["city"].tensor(); }, batch);
    for (int i = 0; i < 2; ++i) {
      for (const double city : numbers(Structure(result.value(i)))) cities.push_back(city);
    }
  }
  EXPECT_THAT(cities, ElementsAre(0, 2, 0, 1));
}

TEST(TransformLayer, ItsOutputsAreReadFromExamples) {
  const TemporaryFolder folder;
  const auto output = analyze_dataset(
      batches(people()),
      [](const Columns& inputs) {
        Columns outputs = preprocess(inputs);
        outputs["words"] = split(inputs["city"]);
        return outputs;
      },
      folder / "output");
  const io::ExampleFeatures features = output.transformed_feature_spec();
  ASSERT_EQ(features.size(), 3);
  EXPECT_EQ(std::get<io::FixedLenFeature>(features[0].second).dtype, float32);
  EXPECT_EQ(std::get<io::FixedLenFeature>(features[1].second).dtype, int64);
  EXPECT_EQ(std::get<io::VarLenFeature>(features[2].second).dtype, std::nullopt);
  EXPECT_EQ(output.raw_feature_spec().size(), 2);
}

}  // namespace
}  // namespace cohort::transform
