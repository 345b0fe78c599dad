// BatchNormalization, LayerNormalization and Normalization; tests/interop compares them with
// TensorFlow's.
#include <ATen/ops/arange.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <mutex>

#include "cohort/core/testing_folder.h"
#include "cohort/data/dataset.h"
#include "cohort/distribute/strategies/replica_context.h"
#include "cohort/distribute/testing_devices.h"
#include "cohort/distribute/testing_tasks.h"
#include "cohort/keras/layers/layers.h"
#include "cohort/keras/model/sequential.h"
#include "cohort/keras/testing_keras.h"
#include "cohort/ops/gradient_tape.h"
#include "cohort/ops/random.h"
#include "cohort/train/checkpoint.h"

namespace cohort::keras::layers {
namespace {

using distribute::mirrored;
using distribute::PerReplica;
using distribute::ReplicaContext;
using distribute::Strategy;
using ::testing::AllOf;
using ::testing::DoubleNear;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pointwise;

const CallOptions kTraining = {.training = true};

TEST(BatchNormalization, NormalizesByTheBatchAndMovesItsAverages) {
  const BatchNormalization layer({.momentum = 0.5, .epsilon = 0});
  const Tensor x = numbers({1, 10, 3, 30}, {2, 2});
  EXPECT_THAT(elements(layer(x, kTraining)), Pointwise(DoubleNear(1e-5), {-1, -1, 1, 1}));
  const auto weights = layer.get_weights();
  EXPECT_THAT(elements(weights[2]), Pointwise(DoubleNear(1e-5), {1, 10}));      // half of 2 and 20
  EXPECT_THAT(elements(weights[3]), Pointwise(DoubleNear(1e-4), {1.0, 50.5}));  // of 1 and (1, 100)
  EXPECT_THAT(elements(layer(x)),
              Pointwise(DoubleNear(1e-5), {0.0, 0.0, 2.0, 20 / std::sqrt(50.5)}));
}

TEST(BatchNormalization, GradientsAreOfTheAveragesOfTheirCall) {
  const BatchNormalization layer({.momentum = 0.5, .epsilon = 0});
  layer(numbers({1, 10, 3, 30}, {2, 2}), kTraining);  // variances of 1 and 50.5
  GradientTape tape;
  const Tensor x = numbers({1, 2, 3, 4}, {2, 2});
  tape.watch(x);
  const Tensor y = layer(x);
  layer(x, kTraining);
  EXPECT_THAT(elements(tape.gradient(y.sum(), x)),
              Pointwise(DoubleNear(1e-5), {1.0, 1 / std::sqrt(50.5), 1.0, 1 / std::sqrt(50.5)}));
}

TEST(BatchNormalization, HasGradientsOfGradientsOutsideOfTraining) {
  for (const bool scale : {true, false}) {
    for (const bool center : {true, false}) {
      const BatchNormalization layer({.epsilon = 0, .center = center, .scale = scale});
      const Tensor x = numbers({1, 2, 3, 4}, {2, 2});
      GradientTape outer({.persistent = true});
      outer.watch(x);
      GradientTape inner({.persistent = true});
      inner.watch(x);
      const Tensor cubes = layer(x).pow(3).sum();  // the averages are 0 and 1
      const Tensor slope = inner.gradient(cubes, x);
      EXPECT_THAT(elements(outer.gradient(slope.sum(), x)),
                  Pointwise(DoubleNear(1e-5), {6, 12, 18, 24}));
    }
  }
}

TEST(BatchNormalization, WhatIsNotTrainableDoesNotMove) {
  const BatchNormalization layer;
  layer(at::ones({2, 3}));
  layer.set_trainable(false);
  const Tensor y = layer(at::ones({2, 3}), kTraining);
  EXPECT_THAT(elements(y), Each(DoubleNear(1 / std::sqrt(1.001), 1e-5)));
  EXPECT_THAT(elements(layer.get_weights()[2]), Each(0));
}

TEST(BatchNormalization, AnEmptyBatchMovesNothing) {
  const BatchNormalization layer;
  EXPECT_THAT(layer(at::zeros({0, 3}), kTraining).sizes(), ElementsAre(0, 3));
  EXPECT_THAT(elements(layer.get_weights()[3]), Each(1));
}

// As Keras 2.15.
TEST(BatchNormalization, StepsThatDoNotCountAreNoPartOfTheBatch) {
  const BatchNormalization layer({.momentum = 0.5, .epsilon = 0});
  const Tensor steps = numbers({1, 5, 0, 0}, {1, 4, 1});
  const Tensor y = layer(Masking()(steps), kTraining);
  EXPECT_THAT(elements(y), Pointwise(DoubleNear(1e-5), {-1.0, 1.0, -1.5, -1.5}));
  EXPECT_THAT(elements(layer.get_weights()[2]), ElementsAre(1.5));
  EXPECT_THAT(elements(layer.get_weights()[3]), ElementsAre(2.5));
  // Outside of training, and where nothing counts, by what it has moved to.
  EXPECT_THAT(elements(layer(Masking()(steps))), elements(layer(steps)));
  layer(Masking()(steps * 0), kTraining);
  EXPECT_THAT(elements(layer.get_weights()[2]), ElementsAre(1.5));
  EXPECT_THAT(elements(layer.get_weights()[3]), ElementsAre(2.5));
}

TEST(BatchNormalization, AFrozenModelsLayerDoesNotMove) {
  const Sequential inner({Dense(2), BatchNormalization()});
  const Sequential outer({inner, Dense(1)});
  const Tensor x = numbers({1, 2, 30, 4}, {2, 2});
  outer(x);
  const std::vector<Tensor> before = inner.get_weights();
  inner.set_trainable(false);
  EXPECT_EQ(elements(outer(x, kTraining)), elements(outer(x)));
  for (size_t i = 0; i < before.size(); ++i) EXPECT_TRUE(inner.get_weights()[i].equal(before[i]));
  inner.set_trainable(true);
  EXPECT_NE(elements(outer(x, kTraining)), elements(outer(x)));
}

TEST(BatchNormalization, RefusesWhatDoesNotFit) {
  EXPECT_THAT(thrown<InvalidArgumentError>([] { BatchNormalization({.momentum = 2}); }),
              HasSubstr("momentum is 2"));
  EXPECT_THAT(thrown<InvalidArgumentError>([] {
                BatchNormalization({.axis = 0})(at::ones({2, 3}));
              }),
              HasSubstr("axis 0"));
  const BatchNormalization layer({.name = "bn"});
  layer(at::ones({2, 3}));
  EXPECT_THAT(thrown<InvalidArgumentError>([&] {
                layer(at::ones({2, 4}));
              }),
              AllOf(HasSubstr("'bn'"), HasSubstr("[2,4]")));
}

TEST(BatchNormalization, MovingAveragesAreMeansOverReplicas) {
  const auto strategy = mirrored(2);
  auto scope = strategy.scope();
  const BatchNormalization layer({.momentum = 0});
  scope.close();
  strategy.run([&](const Tensor& x) { layer(x, kTraining); },
               PerReplica<Tensor>{numbers({1, 3}, {2, 1}), numbers({5, 9}, {2, 1})});
  EXPECT_THAT(elements(layer.variables()[2].value()), ElementsAre(4.5));
  EXPECT_THAT(elements(layer.variables()[2].components().value(1)), ElementsAre(7));
}

// The rows 0 to 5, divided unevenly.
struct Normalized {
  std::vector<double> outputs;
  std::vector<double> gradient;  // of the scale
  double moving_mean = 0;
  double moving_variance = 0;
};

Normalized normalize(const Strategy& strategy, const std::vector<int64_t>& ends) {
  auto scope = strategy.scope();
  const BatchNormalization layer({.momentum = 0, .synchronized = true, .name = "sync"});
  scope.close();
  Normalized result;
  std::mutex mutex;
  strategy.run([&](ReplicaContext& context) {
    const auto id = static_cast<size_t>(context.replica_id_in_sync_group());
    const Tensor rows = at::arange(id == 0 ? 0 : ends[id - 1], ends[id]).to(float32).unsqueeze(1);
    GradientTape tape;
    tape.watch(rows);
    const Tensor y = layer(rows, kTraining);
    const Tensor gradient = tape.gradient((y * rows).square().sum(), rows);
    const Tensor outputs = context.all_gather(y.detach(), 0);
    const Tensor gradients = context.all_gather(gradient, 0);
    std::lock_guard lock(mutex);
    result.outputs = elements(outputs);
    result.gradient = elements(gradients);
  });
  result.moving_mean = layer.variables()[2].value().item<double>();
  result.moving_variance = layer.variables()[3].value().item<double>();
  return result;
}

TEST(SynchronizedBatchNormalization, IsThatOfOneDeviceWithTheWholeBatch) {
  const Normalized one = normalize(mirrored(1), {6});
  EXPECT_NEAR(one.moving_mean, 2.5, 1e-6);
  EXPECT_NEAR(one.moving_variance, 35.0 / 12, 1e-5);
  // Also where a replica has no rows.
  for (const auto& ends : {std::vector<int64_t>{2, 6, 6}, {1, 3, 6}}) {
    const Normalized three = normalize(mirrored(3), ends);
    EXPECT_THAT(three.outputs, Pointwise(DoubleNear(1e-5), one.outputs));
    EXPECT_THAT(three.gradient, Pointwise(DoubleNear(1e-4), one.gradient));
    EXPECT_NEAR(three.moving_variance, one.moving_variance, 1e-5);
  }
}

TEST(SynchronizedBatchNormalization, CountsTheUnmaskedStepsOfAllReplicas) {
  const auto strategy = mirrored(2);
  auto scope = strategy.scope();
  const BatchNormalization layer({.momentum = 0, .synchronized = true});
  scope.close();
  strategy.run([&](const Tensor& x) { layer(Masking()(x), kTraining); },
               PerReplica<Tensor>{numbers({1, 0, 0}, {1, 3, 1}), numbers({4, 7, 0}, {1, 3, 1})});
  EXPECT_THAT(elements(layer.variables()[2].value()), ElementsAre(4));
  EXPECT_THAT(elements(layer.variables()[3].value()), ElementsAre(6));
}

TEST(SynchronizedBatchNormalization, ReachesOverTasks) {
  const Normalized one = normalize(mirrored(1), {6});
  std::vector<Normalized> tasks(2);
  distribute::run_all_tasks(2, 1, [&](const Strategy& strategy, int task) {
    tasks[static_cast<size_t>(task)] = normalize(strategy, {2, 6});
  });
  for (const Normalized& task : tasks) {
    EXPECT_THAT(task.outputs, Pointwise(DoubleNear(1e-5), one.outputs));
    EXPECT_NEAR(task.moving_mean, one.moving_mean, 1e-6);
  }
}

TEST(LayerNormalization, NormalizesEachExample) {
  const LayerNormalization layer({.epsilon = 0});
  EXPECT_THAT(elements(layer(numbers({1, 3, 10, 30}, {2, 2}))),
              Pointwise(DoubleNear(1e-5), {-1, 1, -1, 1}));
  EXPECT_THAT(layer.get_weights()[0].sizes(), ElementsAre(2));
}

TEST(LayerNormalization, TakesAxesThatDoNotEndTheShape) {
  const LayerNormalization layer({.axis = {1}, .epsilon = 0});
  const Tensor x = numbers({1, 10, 3, 30}, {1, 2, 2});
  EXPECT_THAT(elements(layer(x)), Pointwise(DoubleNear(1e-5), {-1, -1, 1, 1}));
  const LayerNormalization both({.axis = {2, 1}});
  EXPECT_THAT(both(at::ones({2, 3, 4})).sizes(), ElementsAre(2, 3, 4));
  EXPECT_THAT(both.get_weights()[0].sizes(), ElementsAre(4, 3));  // as in Keras
  EXPECT_THAT(thrown<InvalidArgumentError>([] {
                LayerNormalization({.axis = {1, -2}})(at::ones({2, 3, 4}));
              }),
              HasSubstr("axis 1 of an input of rank 3 twice"));
  EXPECT_THAT(thrown<InvalidArgumentError>([] {
                LayerNormalization({.axis = {3}})(at::ones({2, 3}));
              }),
              HasSubstr("axis 3"));
}

// It does not transpose them.
TEST(LayerNormalization, UsesWeightsOfAxesInAnotherOrderAsKeras) {
  // ends: whether the axes are the last ones
  for (const bool ends : {false, true}) {
    const LayerNormalization sorted(
        {.axis = ends ? std::vector<int64_t>{2, 3} : std::vector<int64_t>{1, 3}});
    const LayerNormalization turned(
        {.axis = ends ? std::vector<int64_t>{3, 2} : std::vector<int64_t>{3, 1}});
    const Tensor x = random::normal({2, 3, 4, 5});
    sorted(x);
    turned(x);
    const Tensor gamma = random::normal({ends ? 4 : 3, 5}),
                 beta = random::normal({ends ? 4 : 3, 5});
    sorted.set_weights({gamma, beta});
    turned.set_weights({gamma.reshape({5, -1}), beta.reshape({5, -1})});
    EXPECT_EQ(elements(turned(x)), elements(sorted(x)));
  }
}

TEST(Normalization, LearnsFromADatasetWhatItLearnsFromTheWhole) {
  const Tensor rows = numbers({1, 2, 3, 8, 5, 2, 7, 0, 9, 4}, {5, 2});
  const Normalization whole;
  whole.adapt(rows);
  const Normalization streamed;
  streamed.adapt(data::Dataset::from_tensor_slices(rows).batch(2));
  for (const Normalization& layer : {whole, streamed}) {
    const auto weights = layer.get_weights();
    EXPECT_THAT(elements(weights[0]), Pointwise(DoubleNear(1e-6), {5.0, 3.2}));
    EXPECT_THAT(elements(weights[1]), Pointwise(DoubleNear(1e-5), {8.0, 7.36}));
    EXPECT_EQ(weights[2].item<int64_t>(), 5);
    const Tensor y = layer(rows);
    EXPECT_NEAR(y.mean().item<double>(), 0, 1e-6);
  }
  // It forgets what it has learned before.
  streamed.adapt(data::Dataset::from_tensor_slices(rows * 0).batch(2), {.steps = 1});
  EXPECT_THAT(elements(streamed(rows.slice(0, 0, 1))), Pointwise(DoubleNear(1e1), {1e7, 2e7}));
}

TEST(Normalization, TakesNumbersAndGoesBack) {
  const Tensor x = numbers({1, 5}, {1, 2}, int64);
  const Normalization layer({.mean = numbers({3}), .variance = numbers({4})});
  EXPECT_THAT(elements(layer(x)), ElementsAre(-1, 1));
  const Normalization back({.mean = numbers({3}), .variance = numbers({4}), .invert = true});
  EXPECT_THAT(elements(back(layer(x))), ElementsAre(1, 5));
  EXPECT_TRUE(layer.variables().empty());
  const Normalization one_for_all({.axis = {}});
  one_for_all.adapt(numbers({1, 3, 5, 7}, {2, 2}));
  EXPECT_THAT(one_for_all.get_weights()[0].sizes(), ElementsAre());
}

TEST(Normalization, KeepsTheNumbersThatItWasGiven) {
  const Tensor mean = numbers({3}), variance = numbers({4});
  const Normalization layer({.mean = mean, .variance = variance});
  mean.zero_();
  variance.fill_(1);
  EXPECT_THAT(elements(layer(numbers({7}, {1, 1}))), ElementsAre(2));
}

// As in Keras 2.15: examples that are not batched have features of their own along their one axis.
TEST(Normalization, LearnsFromVectorsThatAreNotBatched) {
  const Tensor rows = numbers({1, 2, 3, 8, 5, 2, 7, 0, 9, 4}, {5, 2});
  const auto vectors = data::Dataset::from_tensor_slices(rows);
  const auto labelled = data::Dataset::from_tensor_slices(
      Structure::make_dict({{"x", rows}, {"y", at::ones({5, 1})}}));
  for (const data::Dataset& dataset :
       {vectors, vectors.shuffle(5), vectors.map([](const Tensor& x) { return x; }),
        labelled.map([](const Structure& element) { return element["x"]; })}) {
    const Normalization layer;
    layer.adapt(dataset);
    EXPECT_THAT(elements(layer.get_weights()[0]), Pointwise(DoubleNear(1e-6), {5.0, 3.2}));
    EXPECT_THAT(elements(layer.get_weights()[1]), Pointwise(DoubleNear(1e-5), {8.0, 7.36}));
    EXPECT_EQ(layer.get_weights()[2].item<int64_t>(), 5);
    // One example, and a batch of them.
    EXPECT_THAT(elements(layer(numbers({5, 3.2}))), Each(DoubleNear(0, 1e-6)));
    EXPECT_THAT(layer(rows).sizes(), ElementsAre(5, 2));
    EXPECT_NEAR(layer(rows).mean().item<double>(), 0, 1e-6);
    const Sequential model({layer, Dense(1)});
    EXPECT_THAT(model(rows).sizes(), ElementsAre(5, 1));
  }
}

TEST(Normalization, TakesExamplesOfRankOneByGivenNumbers) {
  const Normalization each({.mean = numbers({1, 2}), .variance = numbers({4, 9})});
  EXPECT_THAT(elements(each(numbers({3, 5}))), ElementsAre(1, 1));
  EXPECT_THAT(elements(each(numbers({3, 5, 1, 2}, {2, 2}))), ElementsAre(1, 1, 0, 0));
  const Normalization one({.mean = at::scalar_tensor(3), .variance = at::scalar_tensor(4)});
  EXPECT_THAT(elements(one(numbers({1, 3, 5}))), ElementsAre(-1, 0, 1));
  // One mean of each column, for all rows.
  const Normalization grid({.axis = {1, 2}, .mean = numbers({1, 2}), .variance = numbers({1})});
  EXPECT_THAT(elements(grid(numbers({1, 2, 3, 4}, {1, 2, 2}))), ElementsAre(0, 0, 2, 2));
}

TEST(Normalization, OneMeanForAllNumbersFitsAnyRank) {
  const Normalization all({.axis = {}});
  all.adapt(numbers({1, 2, 3, 4, 5}));
  EXPECT_THAT(elements(all(numbers({1, 2, 3}))),
              Pointwise(DoubleNear(1e-5), {-std::sqrt(2), -std::sqrt(0.5), 0.0}));
  EXPECT_THAT(elements(all(numbers({3, 3}, {1, 2}))), ElementsAre(0, 0));
  // Numbers one by one, and in batches of different sizes.
  const auto scalars = data::Dataset::from_tensor_slices(numbers({1, 2, 3, 4, 5}));
  for (const data::Dataset& dataset : {scalars, scalars.batch(2)}) {
    const Normalization streamed({.axis = {}});
    streamed.adapt(dataset);
    EXPECT_NEAR(streamed.get_weights()[0].item<double>(), 3, 1e-6);
    EXPECT_NEAR(streamed.get_weights()[1].item<double>(), 2, 1e-6);
    EXPECT_EQ(streamed.get_weights()[2].item<int64_t>(), 5);
  }
}

TEST(Normalization, IsPartOfACheckpoint) {
  const internal::TemporaryFolder folder;
  const Normalization saved;
  saved.adapt(numbers({1, 3}, {2, 1}));
  const std::string path = train::Checkpoint({{"layer", saved}}).write(folder / "saved");
  const Normalization restored;
  train::Checkpoint({{"layer", restored}}).read(path);
  EXPECT_THAT(elements(restored(numbers({1, 3}, {2, 1}))), ElementsAre(-1, 1));
}

TEST(Normalization, RefusesWhatIsWrong) {
  EXPECT_THAT(thrown<InvalidArgumentError>([] { Normalization({.mean = numbers({3})}); }),
              HasSubstr("no variance"));
  const auto given_error = [](Tensor mean, Tensor variance, const Tensor& input) {
    return thrown<InvalidArgumentError>([&] {
      Normalization({.mean = std::move(mean), .variance = std::move(variance), .name = "n"})(input);
    });
  };
  EXPECT_THAT(given_error(numbers({3}), numbers({-4}), at::ones({1, 1})), HasSubstr("below 0"));
  EXPECT_THAT(given_error(numbers({}), numbers({}), at::ones({1, 1})), HasSubstr("mean is"));
  EXPECT_THAT(given_error(numbers({1, 2}), numbers({1, 2}), at::ones({1, 3})),
              AllOf(HasSubstr("'n'"), HasSubstr("mean is float32 [2]"), HasSubstr("[3]")));
  // As Keras: which axis of a batch of numbers is to have a mean of its own?
  const auto scalars = data::Dataset::from_tensor_slices(numbers({1, 2, 3}));
  EXPECT_THAT(thrown<InvalidArgumentError>([] {
                Normalization().adapt(numbers({1, 2, 3}));
              }),
              HasSubstr(".axis = {}"));
  EXPECT_THAT(thrown<InvalidArgumentError>([&] { Normalization().adapt(scalars.batch(2)); }),
              HasSubstr(".axis = {}"));
  EXPECT_THAT(thrown<InvalidArgumentError>([&] { Normalization().adapt(scalars); }),
              HasSubstr(".axis = {}"));
  EXPECT_THAT(thrown<InvalidArgumentError>([] {
                Normalization({.axis = {-1, 1}})(at::ones({2, 3}));
              }),
              HasSubstr("twice"));
  EXPECT_THAT(thrown<InvalidArgumentError>([] {
                Normalization()(numbers({1, 2, 3}));
              }),
              HasSubstr("call adapt first"));
  const Normalization three;
  three.adapt(at::ones({2, 3}));
  EXPECT_THAT(thrown<InvalidArgumentError>([&] {
                three.adapt(at::ones({2, 4}));
              }),
              HasSubstr("3 features along axis 1"));
  EXPECT_THAT(thrown<InvalidArgumentError>([&] {
                three(at::ones({2, 4}));
              }),
              HasSubstr("whose last dimension is 3"));
  const Normalization given({.mean = numbers({3}), .variance = numbers({4}), .name = "given"});
  EXPECT_THAT(thrown<FailedPreconditionError>([&] {
                given.adapt(at::ones({2, 2}));
              }),
              HasSubstr("'given'"));
  EXPECT_THAT(thrown<InvalidArgumentError>([] {
                Normalization().adapt(at::ones({0, 2}));
              }),
              HasSubstr("no data"));
  EXPECT_THAT(thrown<InvalidArgumentError>([] {
                Normalization().adapt(data::Dataset::from_tensors(at::ones({2, 2})).repeat());
              }),
              HasSubstr(".steps"));
  const auto strategy = mirrored(2);
  const Normalization layer;
  EXPECT_THROW(strategy.run([&] { layer.adapt(at::ones({2, 2})); }), FailedPreconditionError);
}

TEST(LayerNormalization, NeedsAnAxis) {
  EXPECT_THAT(
      thrown<InvalidArgumentError>([] { LayerNormalization({.axis = std::vector<int64_t>()}); }),
      HasSubstr("axis names no axis"));
}

}  // namespace
}  // namespace cohort::keras::layers
