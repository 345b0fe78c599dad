// What compile takes: names, objects, functions, one or several outputs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cohort/core/structure/ragged_tensor.h"
#include "cohort/keras/training/testing_fit.h"

namespace cohort::keras {
namespace {

using ::testing::ContainsRegex;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::string> names_of(const Logs& logs) {
  std::vector<std::string> names;
  for (const auto& entry : logs) names.push_back(entry.first);
  return names;
}

TEST(Compile, UnknownNamesAreRefusedWithTheNearestKnown) {
  const Sequential model({layers::Dense(1)});
  EXPECT_THAT(thrown<InvalidArgumentError>([&] { model.compile({.optimizer = "adm"}); }),
              ::testing::AllOf(HasSubstr("'adm'"), HasSubstr("the nearest is 'adam'")));
  EXPECT_THAT(thrown<InvalidArgumentError>(
                  [&] { model.compile({.loss = "sparse_categorical_crossentropi"}); }),
              HasSubstr("the nearest is 'sparse_categorical_crossentropy'"));
  EXPECT_THAT(thrown<InvalidArgumentError>([&] { model.compile({.metrics = {"acuracy"}}); }),
              HasSubstr("the nearest is 'accuracy'"));
  EXPECT_THAT(thrown<InvalidArgumentError>([&] { model.compile({.loss = "qqqq"}); }),
              HasSubstr("there are: "));
}

// Before it is known how many outputs there are, and what they are called.
TEST(Compile, UnknownNamesOfSeveralOutputsAreRefusedAtOnce) {
  const Sequential model({layers::Dense(1)});
  const auto refuses = [&](const CompileOptions& options, const char* nearest) {
    EXPECT_THAT(thrown<InvalidArgumentError>([&] { model.compile(options); }),
                HasSubstr(internal::str("the nearest is '", nearest, "'")));
  };
  refuses({.loss = {"mse", "pooisson"}}, "poisson");
  refuses({.loss = {{"near", "mse"}, {"far", "hubber"}}}, "huber");
  refuses({.loss = "mse", .metrics = {{"near", {"mse"}}, {"far", {"acuracy"}}}}, "accuracy");
  refuses({.loss = "mse", .weighted_metrics = {{"near", {"mse"}}, {"far", {"AUK"}}}}, "AUC");
  const CompileOptions right = {.loss = {"mse", "mae"}, .metrics = {{"near", {"mse"}}}};
  model.compile(right);
}

TEST(Compile, ComesBeforeFit) {
  const Sequential model({layers::Dense(1)});
  EXPECT_THAT(thrown<FailedPreconditionError>([&] { model.fit(numbers({1}), numbers({1})); }),
              HasSubstr("call compile"));
  EXPECT_THAT(thrown<FailedPreconditionError>([&] { model.evaluate(numbers({1}), numbers({1})); }),
              HasSubstr("call compile"));
}

TEST(Compile, StepsPerExecutionIsOneOrMore) {
  const Sequential model({layers::Dense(1)});
  EXPECT_THAT(thrown<InvalidArgumentError>([&] { model.compile({.steps_per_execution = 0}); }),
              HasSubstr("steps_per_execution is 0"));
}

// y = x: the loss is the mean of the squares.
struct OnIdentity : ::testing::Test {
  const Sequential model{layers::Dense(1, {.kernel_initializer = "ones"})};
  const Tensor x = numbers({1, 2, 3, 4}, {4, 1});
  const Tensor y = numbers({1, 1, 1, 1}, {4, 1});
};

TEST_F(OnIdentity, LossesMetricsAndWeightsAreWhatTheySay) {
  model.compile(
      {.loss = "mse",
       .metrics = {"mse",
                   {"error", [](const Tensor& y_true,
                                const Tensor& y_pred) { return (y_true - y_pred).abs().sum(-1); }}},
       .weighted_metrics = {metrics::BinaryAccuracy()}});
  const Logs logs = model.evaluate(x, y, {.verbose = 0});
  EXPECT_THAT(names_of(logs), ElementsAre("loss", "mse", "error", "binary_accuracy"));
  EXPECT_DOUBLE_EQ(logs["loss"], 14 / 4.0);
  EXPECT_DOUBLE_EQ(logs["mse"], 14 / 4.0);
  EXPECT_DOUBLE_EQ(logs["error"], 6 / 4.0);
  EXPECT_THAT(thrown<NotFoundError>([&] { (void)logs["los"]; }), HasSubstr("loss, mse"));
}

TEST_F(OnIdentity, SampleWeightsWeighLossesAndWeightedMetrics) {
  const auto error = [](const Tensor& y_true, const Tensor& y_pred) {
    return (y_true - y_pred).abs().sum(-1);
  };
  model.compile(
      {.loss = "mse", .metrics = {{"plain", error}}, .weighted_metrics = {{"weighed", error}}});
  const Logs logs = model.evaluate(x, y, {.verbose = 0, .sample_weight = numbers({0, 0, 2, 0})});
  EXPECT_DOUBLE_EQ(logs["loss"], 8 / 4.0);  // by the number of examples, as in Keras
  EXPECT_DOUBLE_EQ(logs["plain"], 6 / 4.0);
  EXPECT_DOUBLE_EQ(logs["weighed"], 2);
}

// As Keras calls them.
TEST_F(OnIdentity, AWeightedMetricHasAnotherNameThanThePlainOne) {
  model.compile({.loss = "mse", .metrics = {"mae"}, .weighted_metrics = {"mae"}});
  const Logs logs = model.evaluate(x, y, {.verbose = 0, .sample_weight = numbers({0, 0, 2, 0})});
  EXPECT_THAT(names_of(logs), ElementsAre("loss", "mae", "weighted_mae"));
  EXPECT_DOUBLE_EQ(logs["mae"], 6 / 4.0);
  EXPECT_DOUBLE_EQ(logs["weighted_mae"], 2);
}

TEST_F(OnIdentity, TwoMetricsOfOneNameAreRefused) {
  EXPECT_THAT(thrown<InvalidArgumentError>([&] {
                model.compile({.loss = "mse", .metrics = {"mae", "mse", "mae"}});
              }),
              HasSubstr("two metrics that are called 'mae'"));
}

// As Keras 2.15 does: an object that is updated twice a batch would report neither number.
TEST_F(OnIdentity, OneMetricObjectInTwoPlacesIsRefused) {
  const metrics::MeanAbsoluteError mae;
  const metrics::PredictionMetric same = mae;
  const auto error_of = [&](const CompileOptions& options) {
    return thrown<InvalidArgumentError>([&] { model.compile(options); });
  };
  EXPECT_THAT(error_of({.loss = "mse", .metrics = {mae}, .weighted_metrics = {same}}),
              HasSubstr("the metric 'mean_absolute_error' as one object in metrics and in "
                        "weighted_metrics"));
  EXPECT_THAT(error_of({.loss = "mse", .metrics = {mae, "mse", mae}}),
              HasSubstr("one object twice in metrics"));
  EXPECT_THAT(error_of({.loss = "mse", .metrics = {{"near", mae}, {"far", {"mse", mae}}}}),
              HasSubstr("one object in metrics of output 'near' and in metrics of output 'far'"));
  // Another model's, or this one's before, is none of them.
  model.compile({.loss = "mse", .metrics = mae});
  model.compile({.loss = "mse", .metrics = mae, .weighted_metrics = metrics::MeanAbsoluteError()});
  const Logs logs = model.evaluate(x, y, {.verbose = 0, .sample_weight = numbers({0, 0, 2, 0})});
  EXPECT_DOUBLE_EQ(logs["mean_absolute_error"], 6 / 4.0);
  EXPECT_DOUBLE_EQ(logs["weighted_mean_absolute_error"], 2);
  EXPECT_DOUBLE_EQ(mae.result().number(), 6 / 4.0);
}

TEST_F(OnIdentity, RaggedLabelsAreNamed) {
  model.compile({.loss = "mse"});
  const auto ragged = RaggedTensor::from_row_lengths(at::ones({4}), {1, 1, 0, 2});
  EXPECT_THAT(thrown<InvalidArgumentError>([&] { model.fit(x, ragged, {.verbose = 0}); }),
              HasSubstr("y has a RaggedTensor"));
  const auto dataset = data::Dataset::from_tensor_slices(tuple(x, ragged)).batch(2);
  EXPECT_THAT(thrown<InvalidArgumentError>([&] { model.fit(dataset, {.verbose = 0}); }),
              ::testing::AllOf(HasSubstr("the labels are a RaggedTensor"),
                               HasSubstr("'mean_squared_error'"), HasSubstr("to_tensor()")));
}

TEST_F(OnIdentity, AFunctionMayReturnTheMean) {
  model.compile({.loss = [](const Tensor& y_true, const Tensor& y_pred) {
    return (y_true - y_pred).square().mean();
  }});
  EXPECT_DOUBLE_EQ(model.evaluate(x, y, {.verbose = 0})["loss"], 14 / 4.0);
}

TEST(CompileAccuracy, IsThatOfTheShapes) {
  const Sequential identity({layers::Flatten()});
  identity.compile({.loss = "mse", .metrics = {"accuracy"}});
  // Yes or no.
  EXPECT_DOUBLE_EQ(identity.evaluate(numbers({.9, .2, .6, .1}, {4, 1}),
                                     numbers({1, 1, 1, 0}, {4, 1}), {.verbose = 0})["accuracy"],
                   0.75);
  // Classes by ones.
  EXPECT_DOUBLE_EQ(identity.evaluate(numbers({.9, .1, .2, .8}, {2, 2}),
                                     numbers({1, 0, 1, 0}, {2, 2}), {.verbose = 0})["accuracy"],
                   0.5);
  // Classes by number.
  identity.compile({.loss = class_loss(), .metrics = {"accuracy"}});
  EXPECT_DOUBLE_EQ(identity.evaluate(numbers({.9, .1, .2, .8}, {2, 2}), numbers({1, 1}, {2}, int64),
                                     {.verbose = 0})["accuracy"],
                   0.5);
}

struct TwoOutputs : ::testing::Test {
  const SymbolicTensor input = Input({1});
  const Functional model{input,
                         SymbolicStructure::make_dict(
                             {{"near", layers::Dense(1, {.kernel_initializer = "ones"})(input)},
                              {"far", layers::Dense(1, {.kernel_initializer = "zeros"})(input)}})};
  const Tensor x = numbers({1, 2}, {2, 1});
  const Structure y = dict({{"near", numbers({1, 1}, {2, 1})}, {"far", numbers({2, 2}, {2, 1})}});
};

TEST_F(TwoOutputs, HaveLossesByNameWithWeights) {
  model.compile({.loss = {{"near", "mse"}, {"far", "mse"}},
                 .metrics = {{"far", {"mse"}}},
                 .loss_weights = {{"far", 0.5}}});
  const Logs logs = model.evaluate(x, y, {.verbose = 0});
  EXPECT_THAT(names_of(logs), ElementsAre("loss", "near_loss", "far_loss", "far_mse"));
  EXPECT_DOUBLE_EQ(logs["near_loss"], 0.5);
  EXPECT_DOUBLE_EQ(logs["far_loss"], 4);
  EXPECT_DOUBLE_EQ(logs["loss"], 2.5);
}

// As Keras: where the outputs are no dict, the names are those of the layers that make them.
TEST(Outputs, AreNamedAfterTheirLayers) {
  const SymbolicTensor input = Input({1});
  const layers::Dense kind(1, {.kernel_initializer = "zeros", .name = "kind"});
  const Functional model(
      input, {layers::Dense(1, {.kernel_initializer = "ones", .name = "price"})(input), kind(input),
              kind(input)});
  model.compile({.loss = {{"price", "mse"}, {"kind", "mse"}, {"kind_1", "mae"}},
                 .metrics = {{"price", {"mae"}}},
                 .loss_weights = {{"kind", 0.5}}});
  const Tensor x = numbers({1, 2}, {2, 1});
  const Structure y = dict({{"price", x}, {"kind", x}, {"kind_1", x}});
  const Logs logs = model.evaluate(x, y, {.verbose = 0});
  EXPECT_THAT(names_of(logs),
              ElementsAre("loss", "price_loss", "kind_loss", "kind_1_loss", "price_mae"));
  EXPECT_DOUBLE_EQ(logs["kind_loss"], 2.5);
  EXPECT_DOUBLE_EQ(logs["loss"], 0.5 * 2.5 + 1.5);
  EXPECT_DOUBLE_EQ(model.evaluate(x, tuple(x, x, x), {.verbose = 0})["loss"], 0.5 * 2.5 + 1.5);
}

TEST_F(TwoOutputs, ShareOneLossAndNamedMetrics) {
  model.compile({.loss = "mse", .metrics = {"mse"}});
  EXPECT_THAT(names_of(model.evaluate(x, y, {.verbose = 0})),
              ElementsAre("loss", "near_loss", "far_loss", "near_mse", "far_mse"));
}

TEST_F(TwoOutputs, ReportTheMetricsOfOneAfterTheOther) {
  model.compile({.loss = "mse", .metrics = {"mse"}, .weighted_metrics = {"mae", "mse"}});
  EXPECT_THAT(names_of(model.evaluate(x, y, {.verbose = 0})),
              ElementsAre("loss", "near_loss", "far_loss", "near_mse", "near_mae",
                          "near_weighted_mse", "far_mse", "far_mae", "far_weighted_mse"));
}

TEST_F(TwoOutputs, AreWeighedAlikeByOneTensor) {
  model.compile({.loss = "mse", .weighted_metrics = {"mae"}});
  const Logs logs = model.evaluate(x, y, {.verbose = 0, .sample_weight = numbers({0, 3})});
  EXPECT_DOUBLE_EQ(logs["near_loss"], 1.5);
  EXPECT_DOUBLE_EQ(logs["far_loss"], 6);
  EXPECT_DOUBLE_EQ(logs["near_mae"], 1);
  EXPECT_DOUBLE_EQ(logs["far_mae"], 2);
}

// As in Keras: of several outputs each gets a metric that is made as the object was.
TEST_F(TwoOutputs, HaveAMetricEachOfOneObject) {
  const metrics::MeanAbsoluteError error({.name = "error"});
  struct Doubled : metrics::MeanMetricWrapper {
    Doubled()
        : MeanMetricWrapper(
              [](const Tensor& y_true, const Tensor& y_pred) { return y_true - y_pred; },
              {.name = "doubled"}) {}
    void update_state(const Tensor& y_true, const Tensor& y_pred, const Tensor& weight) const {
      MeanMetricWrapper::update_state(2 * y_true, 2 * y_pred, weight);
    }
  };
  model.compile({.loss = "mse", .metrics = {error, Doubled()}});
  for (int turn = 0; turn < 2; ++turn) {  // the second one begins anew
    const Logs logs = model.evaluate(x, y, {.verbose = 0});
    EXPECT_DOUBLE_EQ(logs["near_error"], 0.5);
    EXPECT_DOUBLE_EQ(logs["far_error"], 2);
    EXPECT_DOUBLE_EQ(logs["near_doubled"], -1);
    EXPECT_DOUBLE_EQ(logs["far_doubled"], 4);
  }
  EXPECT_DOUBLE_EQ(error.result().number(), 0);
}

TEST_F(TwoOutputs, HaveOneMetricEachByName) {
  model.compile(
      {.loss = "mse", .metrics = {{"near", "mae"}, {"far", metrics::MeanSquaredError()}}});
  const Logs logs = model.evaluate(x, y, {.verbose = 0});
  EXPECT_DOUBLE_EQ(logs["near_mae"], 0.5);
  EXPECT_DOUBLE_EQ(logs["far_mean_squared_error"], 4);
  model.compile({.loss = "mse", .metrics = "mae"});
  EXPECT_DOUBLE_EQ(model.evaluate(x, y, {.verbose = 0})["far_mae"], 2);
}

TEST_F(TwoOutputs, MayHaveSampleWeightsOfOne) {
  model.compile({.loss = "mse", .weighted_metrics = "mae"});
  const Tensor weight = numbers({0, 3});
  for (const Structure& weights :
       {Structure(dict({{"near", weight}})), Structure(tuple(weight, Structure()))}) {
    const Logs logs = model.evaluate(x, y, {.verbose = 0, .sample_weight = weights});
    EXPECT_DOUBLE_EQ(logs["near_loss"], 1.5);
    EXPECT_DOUBLE_EQ(logs["far_loss"], 4);
    EXPECT_DOUBLE_EQ(logs["near_mae"], 1);
    EXPECT_DOUBLE_EQ(logs["far_mae"], 2);
  }
  const auto dataset =
      data::Dataset::from_tensor_slices(tuple(x, y, dict({{"near", weight}}))).batch(1);
  EXPECT_DOUBLE_EQ(model.evaluate(dataset, {.verbose = 0})["near_loss"], 1.5);
  EXPECT_THAT(thrown<InvalidArgumentError>([&] {
                model.evaluate(x, y, {.verbose = 0, .sample_weight = dict({{"fur", weight}})});
              }),
              ::testing::AllOf(HasSubstr("sample_weight"), HasSubstr("the nearest is 'far'")));
}

TEST_F(TwoOutputs, AreNamedOnceEach) {
  const auto error_of = [&](const CompileOptions& options) {
    return thrown<InvalidArgumentError>([&] { model.compile(options); });
  };
  EXPECT_THAT(error_of({.loss = {{"near", "mse"}, {"near", "mae"}}}),
              HasSubstr("a loss twice for output 'near'"));
  EXPECT_THAT(error_of({.loss = "mse", .loss_weights = {{"far", 1.}, {"far", 2.}}}),
              HasSubstr("a loss weight twice for output 'far'"));
  EXPECT_THAT(error_of({.loss = "mse", .metrics = {{"far", "mae"}, {"far", "mse"}}}),
              HasSubstr("metrics twice for output 'far'"));
}

TEST_F(TwoOutputs, MayHaveLossesInTheirOrder) {
  model.compile({.loss = {"mse", "mse"}, .loss_weights = {1.0, 0.25}});
  EXPECT_DOUBLE_EQ(model.evaluate(x, y, {.verbose = 0})["loss"], 1.5);
}

// What is meant for an output that is not there is not left out without a word.
TEST(OneOutput, HasAName) {
  const Tensor x = numbers({1, 2}, {2, 1});
  const Sequential model(
      {Input({1}), layers::Dense(1, {.kernel_initializer = "zeros", .name = "price"})});
  model.compile({.loss = "mse", .metrics = {{"price", {"mae"}}}, .loss_weights = {{"price", 0.5}}});
  const Logs logs = model.evaluate(x, x, {.verbose = 0});
  EXPECT_DOUBLE_EQ(logs["loss"], 1.25);
  EXPECT_DOUBLE_EQ(logs["mae"], 1.5);
  const auto refused = [&](const CompileOptions& options) {
    model.compile(options);
    return thrown<InvalidArgumentError>([&] { model.evaluate(x, x, {.verbose = 0}); });
  };
  for (const CompileOptions& options :
       {CompileOptions{.loss = {{"prize", "mse"}}},
        CompileOptions{.loss = "mse", .metrics = {{"prize", {"mae"}}}},
        CompileOptions{.loss = "mse", .loss_weights = {{"prize", 0.5}}},
        CompileOptions{.loss = "mse", .weighted_metrics = {{"prize", {"mae"}}}},
        CompileOptions{.loss = {{"price", "mse"}}, .metrics = {{"prize", {"mae"}}}}}) {
    EXPECT_THAT(refused(options), HasSubstr("is called 'prize'; the nearest is 'price'"));
  }
  EXPECT_THAT(refused({.loss = "mse", .loss_weights = {0.5, 2.0}}),
              HasSubstr("2 loss weights for a model with 1 output"));
}

TEST_F(TwoOutputs, WrongNamesAndCountsAreRefused) {
  model.compile({.loss = {{"near", "mse"}, {"fur", "mse"}}});
  EXPECT_THAT(thrown<InvalidArgumentError>([&] { model.evaluate(x, y, {.verbose = 0}); }),
              HasSubstr("the nearest is 'far'"));
  model.compile({.loss = {"mse", "mse", "mse"}});
  EXPECT_THAT(thrown<InvalidArgumentError>([&] { model.evaluate(x, y, {.verbose = 0}); }),
              HasSubstr("3 losses for a model with 2 outputs"));
  for (const auto& weights : {PerOutput<double>({0.5}), PerOutput<double>({0.5, 1.0, 2.0})}) {
    model.compile({.loss = "mse", .loss_weights = weights});
    EXPECT_THAT(thrown<InvalidArgumentError>([&] { model.evaluate(x, y, {.verbose = 0}); }),
                ContainsRegex("(1 loss weight|3 loss weights) for a model with 2 outputs"));
  }
  model.compile({.loss = "mse"});
  EXPECT_THAT(thrown<InvalidArgumentError>([&] {
                model.evaluate(x, numbers({1, 1}), {.verbose = 0});
              }),
              HasSubstr("the model has 2 outputs"));
}

}  // namespace
}  // namespace cohort::keras
