// What data fit takes, how long an epoch is, and what is refused.
#include <ATen/ops/arange.h>
#include <ATen/ops/ones.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cohort/distribute/input/distributed_dataset.h"
#include "cohort/distribute/input/input_context.h"
#include "cohort/keras/training/testing_fit.h"

namespace cohort::keras {
namespace {

using data::Dataset;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

struct FitData : ::testing::Test {
  const Sequential model = small_classifier();
  const LabelledImages data = make_images(13, float32);

  FitData() { model.compile(class_options()); }
  int64_t steps_done() const { return model.optimizer().iterations().value().item<int64_t>(); }
};

TEST_F(FitData, TensorsAreBatched) {
  model.fit(data.images, data.labels, {.batch_size = 4, .epochs = 2, .verbose = 0});
  EXPECT_EQ(steps_done(), 8);  // 4, 4, 4 and 1
}

TEST_F(FitData, BatchesHave32ExamplesIfNothingIsSaid) {
  model.fit(data.images, data.labels, {.verbose = 0});
  EXPECT_EQ(steps_done(), 1);
}

TEST_F(FitData, ADatasetIsReadToItsEnd) {
  model.fit(image_batches(13, 6), {.epochs = 2, .verbose = 0});
  EXPECT_EQ(steps_done(), 6);
}

TEST_F(FitData, StepsOfAnEpochGoOnWhereTheLastHasStopped) {
  const Dataset numbers = Dataset::range(12).map(
      [](int64_t i) { return tuple(at::arange(i, i + 1).to(float32), at::arange(1).to(float32)); });
  std::vector<double> seen;
  const Sequential identity({layers::Dense(1, {.name = "one"})});
  identity.compile(
      {.optimizer = optimizers::SGD({.learning_rate = 0.0}),
       .loss = [](const Tensor&, const Tensor& y_pred) { return y_pred.sum(-1) * 0; },
       .metrics = {{"seen", [&](const Tensor& y_true, const Tensor&) { return y_true.sum(-1); }}}});
  const auto ask = [&](const Dataset& dataset, const FitOptions& options) {
    return identity.fit(
        dataset.map([](const Tensor& x, const Tensor&) { return tuple(x, x); }).batch(1),
        options)["seen"];
  };
  EXPECT_THAT(ask(numbers, {.epochs = 3, .verbose = 0, .steps_per_epoch = 2}),
              ElementsAre(0.5, 2.5, 4.5));
  // As many steps as there are data: each epoch reads all of it.
  EXPECT_THAT(ask(numbers, {.epochs = 2, .verbose = 0, .steps_per_epoch = 12}),
              ElementsAre(5.5, 5.5));
  EXPECT_THAT(ask(numbers.repeat(), {.epochs = 2, .verbose = 0, .steps_per_epoch = 12}),
              ElementsAre(5.5, 5.5));
}

// As TensorFlow 2.15 gives them.
TEST_F(FitData, StepsOfAnEpochGoOnOverTensorsAsOftenAsThereAreEpochs) {
  const Sequential identity({layers::Dense(1)});
  identity.compile(
      {.optimizer = "sgd",
       .loss = "mse",
       .metrics = {{"seen", [](const Tensor& y_true, const Tensor&) { return y_true.sum(-1); }}}});
  const Tensor numbers = at::arange(12).to(float32).unsqueeze(1);
  const auto seen = [&](int64_t steps, FitOptions options) {
    options.batch_size = 4;
    options.verbose = 0;
    options.shuffle = false;
    options.steps_per_epoch = steps;
    return identity.fit(numbers, numbers, options)["seen"];
  };
  EXPECT_THAT(seen(2, {.epochs = 5}), ElementsAre(3.5, 5.5, 7.5, 3.5, 5.5));
  EXPECT_THAT(seen(3, {.epochs = 2}), ElementsAre(5.5, 5.5));
  EXPECT_THAT(seen(2, {.epochs = 4, .initial_epoch = 2}), ElementsAre(3.5, 5.5));
  EXPECT_THAT(seen(4, {.epochs = 2}), ElementsAre(4.5, 7.5));  // 2 of 4 steps, then no more data
}

TEST_F(FitData, ThatEndsEarlyEndsTrainingWithAWarning) {
  ::testing::internal::CaptureStderr();
  const History history =
      model.fit(image_batches(13, 6), {.epochs = 4, .verbose = 0, .steps_per_epoch = 2});
  const std::string warning = ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(history.epoch, ElementsAre(0, 1));
  EXPECT_EQ(steps_done(), 3);
  EXPECT_THAT(warning, HasSubstr("after 1 of 2 steps of epoch 2"));
  EXPECT_THAT(warning, HasSubstr("repeat"));
}

TEST_F(FitData, ThatEndsWithAnEpochEndsTrainingWithAWarning) {
  ::testing::internal::CaptureStderr();
  const History history =
      model.fit(image_batches(12, 6), {.epochs = 4, .verbose = 0, .steps_per_epoch = 1});
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("before epoch 3 of 4"));
  EXPECT_THAT(history.epoch, ElementsAre(0, 1));
}

TEST_F(FitData, ThatNeverEndsNeedsSteps) {
  const Dataset endless = image_batches(13, 6).repeat();
  EXPECT_THAT(thrown<InvalidArgumentError>([&] { model.fit(endless, {.verbose = 0}); }),
              HasSubstr("steps_per_epoch"));
  EXPECT_THAT(thrown<InvalidArgumentError>([&] { model.evaluate(endless, {.verbose = 0}); }),
              HasSubstr("steps"));
  model.fit(endless, {.epochs = 2, .verbose = 0, .steps_per_epoch = 4});
  EXPECT_EQ(steps_done(), 8);
}

TEST_F(FitData, WithoutExamplesIsRefused) {
  EXPECT_THAT(thrown<InvalidArgumentError>(
                  [&] { model.fit(image_batches(13, 6).take(0), {.verbose = 0}); }),
              HasSubstr("no batches"));
  EXPECT_THAT(thrown<InvalidArgumentError>([&] {
                model.fit(data.images.slice(0, 0, 0), data.labels.slice(0, 0, 0), {.verbose = 0});
              }),
              HasSubstr("no examples"));
}

TEST_F(FitData, OfDifferentLengthsIsRefused) {
  EXPECT_THAT(thrown<InvalidArgumentError>(
                  [&] { model.fit(data.images, data.labels.slice(0, 0, 5), {.verbose = 0}); }),
              ::testing::AllOf(HasSubstr("x has 13"), HasSubstr("y has 5")));
}

TEST_F(FitData, WrongStepsAreRefused) {
  for (const int64_t steps : {0, -2}) {
    EXPECT_THAT(thrown<InvalidArgumentError>([&] {
                  model.fit(image_batches(13, 6), {.verbose = 0, .steps_per_epoch = steps});
                }),
                HasSubstr("steps_per_epoch is " + std::to_string(steps)));
  }
  model.fit(image_batches(13, 6), {.verbose = 0, .steps_per_epoch = -1});
  EXPECT_EQ(steps_done(), 3);
}

TEST_F(FitData, WhatBelongsIntoTheDatasetIsRefusedBesideIt) {
  const Dataset dataset = image_batches(13, 6);
  EXPECT_THAT(thrown<InvalidArgumentError>([&] { model.fit(dataset, data.labels); }),
              HasSubstr("y stands beside"));
  EXPECT_THAT(
      thrown<InvalidArgumentError>([&] { model.fit(dataset, {.sample_weight = data.labels}); }),
      HasSubstr("third member"));
  EXPECT_THAT(thrown<InvalidArgumentError>([&] { model.fit(dataset, {.batch_size = 3}); }),
              HasSubstr(".batch(3)"));
  EXPECT_THAT(thrown<InvalidArgumentError>([&] { model.fit(dataset, {.validation_split = 0.5}); }),
              HasSubstr("take() and skip()"));
}

TEST_F(FitData, ValidationSplitKeepsTheLastExamples) {
  const History history =
      model.fit(data.images, data.labels,
                {.batch_size = 4, .epochs = 1, .verbose = 0, .validation_split = 0.3});
  EXPECT_EQ(steps_done(), 3);  // of 9 examples
  const Logs last = model.evaluate(data.images.slice(0, 9), data.labels.slice(0, 9),
                                   {.batch_size = 4, .verbose = 0});
  EXPECT_EQ(history["val_loss"][0], last["loss"]);
  EXPECT_THAT(thrown<InvalidArgumentError>([&] {
                model.fit(data.images, data.labels, {.verbose = 0, .validation_split = 0.99});
              }),
              HasSubstr("without any"));
}

TEST_F(FitData, WhatDoesNotFitInThatOfValidationIsSaidOfIt) {
  const Sequential model({layers::Dense(1)});
  model.compile({.optimizer = "sgd", .loss = "mse"});
  const Tensor x = at::ones({4, 3}), y = at::ones({4, 1});
  const auto refused = [&](const Data& validation) {
    return thrown<InvalidArgumentError>(
        [&] { model.fit(x, y, {.verbose = 0, .validation_data = validation}); });
  };
  EXPECT_THAT(refused(Data(at::ones({4, 5}), y)), HasSubstr("validation: "));
  EXPECT_THAT(refused(Data(x)), HasSubstr("validation: "));
  EXPECT_THAT(refused(Data(x, tuple(y, y))), HasSubstr("validation: "));
}

TEST_F(FitData, ValidationHappensWhenItIsDue) {
  const Data held = Data(data.images, data.labels);
  const auto validated = [&](const ValidationFreq& freq) {
    return model
        .fit(image_batches(13, 6), {.epochs = 5,
                                    .verbose = 0,
                                    .validation_data = held,
                                    .validation_freq = freq})["val_loss"]
        .size();
  };
  EXPECT_EQ(validated(1), 5u);
  EXPECT_EQ(validated(2), 2u);
  EXPECT_EQ(validated({1, 5}), 2u);
}

TEST(FitDistributed, TakesADistributedDatasetWithoutSteps) {
  const auto strategy = distribute::mirrored(2);
  const auto scope = strategy.scope();
  const Sequential model = small_classifier();
  model.compile(class_options());
  const auto dataset = strategy.experimental_distribute_dataset(image_batches(13, 6));
  EXPECT_EQ(model.fit(dataset, {.epochs = 2, .verbose = 0}).epoch.size(), 2u);
  EXPECT_EQ(model.optimizer().iterations().value().item<int64_t>(), 6);
}

TEST(FitDistributed, RefusesTheDatasetOfAnotherStrategy) {
  const auto dataset =
      distribute::mirrored(2).experimental_distribute_dataset(image_batches(13, 6));
  const Sequential model = small_classifier();
  model.compile(class_options());
  EXPECT_THAT(thrown<InvalidArgumentError>([&] { model.fit(dataset); }),
              HasSubstr("another strategy"));
}

TEST(FitDistributed, TakesAFunctionThatMakesTheDataset) {
  const auto strategy = distribute::mirrored(2);
  const auto scope = strategy.scope();
  const Sequential model = small_classifier();
  model.compile(class_options());
  int calls = 0;
  const DatasetCreator creator([&](const distribute::InputContext& context) {
    ++calls;
    return image_batches(13, context.get_per_replica_batch_size(6)).repeat();
  });
  model.fit(creator, {.epochs = 3, .verbose = 0, .steps_per_epoch = 2});
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(model.optimizer().iterations().value().item<int64_t>(), 6);
  EXPECT_THAT(thrown<InvalidArgumentError>([&] { model.fit(creator); }), HasSubstr("never ends"));
}

}  // namespace
}  // namespace cohort::keras
