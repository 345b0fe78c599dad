// evaluate, predict, and single batches.
#include <ATen/ops/equal.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/tensor.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cohort/data/files/text_line_dataset.h"
#include "cohort/data/testing_files.h"
#include "cohort/distribute/input/distributed_dataset.h"
#include "cohort/distribute/testing_tasks.h"
#include "cohort/keras/training/testing_fit.h"

namespace cohort::keras {
namespace {

using ::testing::HasSubstr;

TEST(Evaluate, IsTheMeanOverAllExamples) {
  const auto strategy = distribute::mirrored(2);
  const auto scope = strategy.scope();
  const Sequential model = small_classifier();
  model.compile(class_options());
  const LabelledImages data = make_images(13, float32);
  const Logs logs = model.evaluate(data.images, data.labels, {.batch_size = 4, .verbose = 0});
  const Tensor logits = model(data.images);
  const Tensor losses = class_loss().with_reduction(losses::Reduction::NONE)(data.labels, logits);
  EXPECT_NEAR(logs["loss"], losses.mean().item<double>(), 1e-6);
  EXPECT_NEAR(logs["accuracy"],
              (logits.argmax(-1) == data.labels).to(float64).mean().item<double>(), 1e-6);
}

// TensorFlow's test_numpy_with_sample_weights: the mean of the weighted losses over the examples.
TEST(Evaluate, WeighsExamplesByTheirNumber) {
  for (const int replicas : {1, 2}) {
    const auto strategy = distribute::mirrored(replicas);
    const auto scope = strategy.scope();
    const Sequential model({layers::Dense(1, {.kernel_initializer = "ones"})});
    model.compile({.optimizer = "rmsprop", .loss = "mse"});
    const Tensor x = numbers({0, 1, 2, 3}, {4, 1});
    const Tensor y = numbers({2, 4, 6, 8}, {4, 1});
    const Logs weighted = model.evaluate(
        x, y, {.batch_size = 2, .verbose = 0, .sample_weight = numbers({0.25, 0.5, 0.75, 1})});
    EXPECT_EQ(weighted["loss"], 10.625) << replicas;
    EXPECT_EQ(model.evaluate(x, y, {.batch_size = 2, .verbose = 0})["loss"], 13.5) << replicas;
  }
}

// The numbers of Keras on one replica: the mean of the batches' sums, weighted by their rows.
TEST(Evaluate, SumsOverTheBatchHoweverItIsDivided) {
  for (const int replicas : {1, 2, 3}) {
    const auto strategy = distribute::mirrored(replicas);
    const auto scope = strategy.scope();
    const Sequential model({layers::Dense(1, {.kernel_initializer = "zeros"})});
    model.compile({.optimizer = "sgd",
                   .loss = losses::MeanSquaredError({.reduction = losses::Reduction::SUM})});
    const Tensor x = numbers({1, 1, 1, 1}, {4, 1});
    const Tensor y = numbers({1, 2, 3, 4}, {4, 1});
    EXPECT_EQ(model.test_on_batch(x, y)["loss"], 30) << replicas;
    EXPECT_EQ(model.evaluate(x, y, {.batch_size = 3, .verbose = 0})["loss"],
              (3 * 14 + 1 * 16) / 4.0)
        << replicas;
  }
}

// The numbers of Keras 2.15 on one replica: of losses that stay apart a batch's mean counts by the
// square of its rows, and their sum is minimized.
TEST(Evaluate, ReportsLossesThatStayApartAsKerasDoes) {
  const losses::LossOptions each{.reduction = losses::Reduction::NONE};
  for (const int replicas : {1, 2, 3}) {
    const auto strategy = distribute::mirrored(replicas);
    const auto scope = strategy.scope();
    const auto dense = [](const char* name) {
      return layers::Dense(1, {.use_bias = false, .kernel_initializer = "zeros", .name = name});
    };
    const Tensor x = numbers({1, 1, 1}, {3, 1});
    const Tensor y = numbers({1, 2, 5}, {3, 1});
    const Sequential model({dense("one")});
    model.compile({.optimizer = optimizers::SGD({.learning_rate = 0.125}),
                   .loss = losses::MeanSquaredError(each)});
    EXPECT_FLOAT_EQ(model.evaluate(x, y, {.batch_size = 2, .verbose = 0})["loss"], 7) << replicas;
    const History history =
        model.fit(x, y, {.batch_size = 2, .epochs = 2, .verbose = 0, .shuffle = false});
    EXPECT_FLOAT_EQ(history["loss"][0], 5.6125) << replicas;
    EXPECT_FLOAT_EQ(history["loss"][1], 2.5142579) << replicas;
    const auto in = Input({1});
    const Functional two(in, {dense("a")(in), dense("b")(in)});
    two.compile({.loss = {losses::MeanSquaredError(each), losses::MeanAbsoluteError(each)}});
    const Logs logs = two.evaluate(x, tuple(y, y), {.batch_size = 2, .verbose = 0});
    EXPECT_FLOAT_EQ(logs["loss"], 9.2) << replicas;
    EXPECT_FLOAT_EQ(logs["a_loss"], 7) << replicas;
    EXPECT_FLOAT_EQ(logs["b_loss"], 2.2) << replicas;
  }
}

// As in Keras every batch counts alike, for it has no labels to be counted.
TEST(Evaluate, ReportsThePenaltiesOfAModelWithoutALoss) {
  for (const int replicas : {1, 2}) {
    const auto strategy = distribute::mirrored(replicas);
    const auto scope = strategy.scope();
    const Sequential model({layers::Dense(2, {.use_bias = false,
                                              .kernel_initializer = "ones",
                                              .kernel_regularizer = regularizers::L2(0.5)})});
    model.compile({.optimizer = optimizers::SGD({.learning_rate = 0.})});
    const Tensor x = numbers({1, 2, 3, 4}, {4, 1});
    EXPECT_EQ(model.evaluate(x, {.batch_size = 3, .verbose = 0})["loss"], 1) << replicas;
    EXPECT_EQ(model.fit(x, {.batch_size = 3, .verbose = 0})["loss"][0], 1) << replicas;
    EXPECT_EQ(model.train_on_batch(x)["loss"], 1) << replicas;
  }
}

// A vector of weights has one for each row of an image where losses are [batch, height, width], as
// in Keras.
TEST(Evaluate, WeighsImagesByWeightsOfTheirShape) {
  const Sequential model({layers::Flatten(), layers::Reshape({2, 2, 1})});
  model.compile({.loss = "mse", .weighted_metrics = {"mse"}});
  const Tensor x = numbers({0, 0, 0, 0, 0, 0, 0, 0}, {2, 2, 2, 1});
  const Tensor y = numbers({1, 1, 1, 1, 0, 0, 0, 0}, {2, 2, 2, 1});
  const auto weighted = [&](const Tensor& weight) {
    return model.test_on_batch(x, y, {.sample_weight = weight});
  };
  const Logs by_row = weighted(numbers({0, 1}));
  EXPECT_EQ(by_row["loss"], 0.25);
  EXPECT_EQ(by_row["mse"], 0);
  EXPECT_EQ(weighted(numbers({0, 1}, {2, 1, 1}))["loss"], 0);
}

// As in Keras, which makes a column of them: a batch counted as one row of as many values.
TEST(Evaluate, TakesAVectorOfLabelsForAModelThatGivesOneNumber) {
  for (const int replicas : {1, 2}) {
    const auto strategy = distribute::mirrored(replicas);
    const auto scope = strategy.scope();
    const Sequential model(
        {layers::Dense(1, {.activation = "sigmoid", .kernel_initializer = "ones"})});
    const MetricList metrics = {"mse",
                                "mae",
                                "mape",
                                "msle",
                                "hinge",
                                "poisson",
                                "logcosh",
                                "cosine_similarity",
                                "accuracy",
                                "AUC",
                                "binary_crossentropy"};
    model.compile({.optimizer = "sgd",
                   .loss = "binary_crossentropy",
                   .metrics = metrics,
                   .weighted_metrics = metrics});
    const Tensor x = numbers({-2, 3, 1, -1, 2}, {5, 1});
    const Tensor y = numbers({0, 1, 0, 0, 1});
    const Tensor weight = numbers({1, 2, 3, 4, 5});
    for (const Structure& weights : {Structure(), Structure(weight)}) {
      const EvaluateOptions options{.batch_size = 2, .verbose = 0, .sample_weight = weights};
      EXPECT_EQ(model.evaluate(x, y, options).entries(),
                model.evaluate(x, y.unsqueeze(1), options).entries())
          << replicas;
    }
    EXPECT_NO_THROW(model.fit(
        x, y, {.batch_size = 2, .verbose = 0, .class_weight = {{1, 2.}}, .sample_weight = weight}));
  }
}

TEST(Evaluate, TakesVectorsOfLabelsForSeveralOutputs) {
  const auto in = Input({1});
  const auto price = layers::Dense(1, {.kernel_initializer = "ones", .name = "price"})(in);
  const auto kind = layers::Dense(3, {.kernel_initializer = "zeros", .name = "kind"})(in);
  const Functional model(in, {price, kind});
  model.compile({.loss = {{"price", "mse"}, {"kind", class_loss()}},
                 .metrics = {{"price", {"mae"}}, {"kind", {"accuracy"}}}});
  const Tensor kinds = at::tensor({0, 1, 0});
  const Logs logs = model.evaluate(numbers({1, 2, 3}, {3, 1}), tuple(numbers({2, 4, 3}), kinds),
                                   {.batch_size = 2, .verbose = 0});
  EXPECT_DOUBLE_EQ(logs["price_mae"], 1);
  EXPECT_NEAR(logs["price_loss"], 5.0 / 3, 1e-6);
  EXPECT_NEAR(logs["kind_accuracy"], 2.0 / 3, 1e-6);
}

TEST(Evaluate, ChangesNoWeights) {
  const Sequential model = small_classifier();
  model.compile(class_options());
  model.evaluate(image_batches(13, 6), {.verbose = 0});
  const auto before = all_weights(model);
  model.evaluate(image_batches(13, 6), {.verbose = 0, .steps = 2});
  EXPECT_EQ(all_weights(model), before);
}

TEST(Predict, ComesInTheOrderOfTheData) {
  const LabelledImages data = make_images(13, float32);
  const auto expect_ordered = [&](const distribute::Strategy& strategy) {
    const auto scope = strategy.scope();
    const Sequential model = small_classifier();
    const Tensor whole = model(data.images);
    const Tensor predicted = model.predict(data.images, {.batch_size = 4, .verbose = 0});
    ASSERT_EQ(predicted.sizes(), whole.sizes());
    EXPECT_LT((predicted - whole).abs().max().item<double>(), 1e-5);
    // Of (x, y) it uses x.
    const Tensor of_dataset = model.predict(image_batches(13, 4), {.verbose = 0});
    ASSERT_EQ(of_dataset.sizes(), whole.sizes());
    EXPECT_LT((of_dataset - whole).abs().max().item<double>(), 1e-5);
  };
  expect_ordered(distribute::mirrored(1));
  expect_ordered(distribute::mirrored(3));
  distribute::run_all_tasks(
      2, 2, [&](const distribute::Strategy& strategy, int) { expect_ordered(strategy); });
}

struct PredictOfFiles : data::FilesTest {};

// TensorFlow's test_predict_on_dataset_shard_options_file_multi_worker_mirrored: one file is too
// few for two tasks to take files, but not for them to predict its rows.
TEST_F(PredictOfFiles, RowsOfOneFileAreDividedWhateverItsPolicySays) {
  const std::string file = write("numbers.txt", "0\n1\n2\n3\n4\n5\n6\n");
  data::Options options;
  options.experimental_distribute.auto_shard_policy = data::AutoShardPolicy::FILE;
  const auto dataset = data::TextLineDataset(file)
                           .map([](const StringTensor& line) {
                             return numbers({std::stod(std::string(line.item()))});
                           })
                           .batch(2)
                           .with_options(options);
  distribute::run_all_tasks(2, 1, [&](const distribute::Strategy& strategy, int) {
    const auto scope = strategy.scope();
    const Sequential model({layers::Dense(1, {.kernel_initializer = "ones", .name = "same"})});
    const Tensor predicted = model.predict(dataset, {.verbose = 0});
    EXPECT_THAT(elements(predicted), ::testing::ElementsAre(0, 1, 2, 3, 4, 5, 6));
  });
}

TEST(Predict, GivesTheFormOfTheOutputs) {
  const SymbolicTensor input = Input({2});
  const Functional model(input, SymbolicStructure::make_dict({{"a", layers::Dense(1)(input)},
                                                              {"b", layers::Dense(3)(input)}}));
  const Structure outputs = model.predict(numbers({1, 2, 3, 4, 5, 6}, {3, 2}), {.verbose = 0});
  EXPECT_EQ(outputs["a"].tensor().sizes(), (std::vector<int64_t>{3, 1}));
  EXPECT_EQ(outputs["b"].tensor().sizes(), (std::vector<int64_t>{3, 3}));
}

TEST(Predict, SaysWhereTheDataHasEndedBeforeTheSteps) {
  const Sequential model = small_classifier();
  ::testing::internal::CaptureStderr();
  const Tensor found =
      model.predict(make_images(12, float32).images, {.batch_size = 6, .verbose = 0, .steps = 3});
  EXPECT_EQ(found.size(0), 12);
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("after 2 of 3 steps"));
}

TEST(Predict, WithoutDataIsRefused) {
  const Sequential model = small_classifier();
  EXPECT_THAT(thrown<InvalidArgumentError>(
                  [&] { model.predict(image_batches(13, 4).take(0), {.verbose = 0}); }),
              HasSubstr("no batches"));
}

void expect_words_in_order(const distribute::Strategy& strategy) {
  const auto scope = strategy.scope();
  const Sequential model(
      {layers::StringLookup({.vocabulary = std::vector<std::string>{"a", "b"}, .invert = true})});
  const Structure words =
      model.predict(at::tensor({1, 2, 1, 1, 2}, at::kLong), {.batch_size = 2, .verbose = 0});
  EXPECT_THAT(words.strings().to_vector(), ::testing::ElementsAre("a", "b", "a", "a", "b"));
}

TEST(Predict, JoinsStrings) {
  for (const int replicas : {1, 2}) expect_words_in_order(distribute::mirrored(replicas));
}

TEST(Predict, StringsOfTasksComeInTheOrderOfTheData) {
  distribute::run_all_tasks(
      2, 1, [](const distribute::Strategy& strategy, int) { expect_words_in_order(strategy); });
}

TEST(Predict, RowsOfUnlikeShapesAreRefused) {
  const Sequential model({layers::Rescaling(2)}, {.name = "twice"});
  const auto batches = data::Dataset::range(4)
                           .map([](int64_t i) {
                             return at::ones({i + 1, 3});
                           })
                           .padded_batch(2);
  EXPECT_THAT(thrown<InvalidArgumentError>([&] { model.predict(batches, {.verbose = 0}); }),
              ::testing::AllOf(HasSubstr("'twice'"), HasSubstr("[2,2,3]"),
                               HasSubstr("[2,4,3] for batch 1"), HasSubstr("padded_batch")));
}

TEST(Predict, AScalarOutputIsRefused) {
  const Sequential model({layers::Lambda([](const Tensor& x) { return x.sum(); })},
                         {.name = "sums"});
  EXPECT_THAT(thrown<InvalidArgumentError>([&] {
                model.predict(at::ones({4, 2}), {.batch_size = 2, .verbose = 0});
              }),
              ::testing::AllOf(HasSubstr("'sums'"), HasSubstr("batch dimension")));
}

TEST(OnBatch, TrainsTestsAndPredictsOneBatch) {
  const auto strategy = distribute::mirrored(2);
  const auto scope = strategy.scope();
  const Sequential model = small_classifier();
  model.compile(class_options());
  const LabelledImages data = make_images(8, float32);
  const Logs before = model.test_on_batch(data.images, data.labels, {.reset_metrics = true});
  const Logs first = model.train_on_batch(data.images, data.labels, {.reset_metrics = true});
  EXPECT_NEAR(first["loss"], before["loss"], 1e-6);
  for (int i = 0; i < 20; ++i) model.train_on_batch(data.images, data.labels);
  const Logs after = model.test_on_batch(data.images, data.labels, {.reset_metrics = true});
  EXPECT_LT(after["loss"], before["loss"]);
  const Tensor predicted = model.predict_on_batch(data.images);
  EXPECT_LT((predicted - model(data.images)).abs().max().item<double>(), 1e-5);
}

}  // namespace
}  // namespace cohort::keras
