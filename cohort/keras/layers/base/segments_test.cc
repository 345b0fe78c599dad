#include "cohort/keras/layers/base/segments.h"

#include <ATen/ops/allclose.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/where.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "cohort/core/testing_errors.h"
#include "cohort/keras/base/logits.h"
#include "cohort/keras/keras.h"
#include "cohort/keras/testing_keras.h"
#include "cohort/keras/testing_two_replicas.h"
#include "cohort/ops/gradient_tape.h"
#include "cohort/ops/random.h"

namespace cohort::keras::layers {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

std::vector<LayerHandle> cnn_layers() {
  const initializers::Initializer normal = "random_normal";
  return {Conv2D(8, 3, {.activation = "relu", .bias_initializer = normal, .name = "first"}),
          MaxPooling2D(2, {.name = "pool"}),
          Conv2D(12, 3, {.bias_initializer = normal, .name = "second"}),
          Activation("relu", {.name = "activation"}),
          Flatten({.name = "flatten"}),
          Dropout(0.5, {.name = "dropout"}),
          Dense(9, {.activation = "relu", .bias_initializer = normal, .name = "hidden"}),
          Dense(4, {.bias_initializer = normal, .name = "output"})};
}

// The same weights, one layer after the other.
Tensor apart(const std::vector<LayerHandle>& layers, const Tensor& x) {
  Tensor y = x;
  for (const LayerHandle& layer : layers) y = layer(y, {.training = true});
  return y;
}

void expect_near(const Tensor& ours, const Tensor& theirs, const std::string& what) {
  ASSERT_EQ(ours.sizes(), theirs.sizes()) << what;
  if (theirs.numel() == 0) return;
  EXPECT_TRUE(at::allclose(ours, theirs, 1e-4, 1e-5 * theirs.abs().max().item<double>())) << what;
}

// Values and gradients of a model as a whole and of its layers one by one, which drop the same.
// With whole numbers (unless told otherwise), whose products and sums are exact: both find the same
// maxima, however they round. Returns the model's explain().
std::string expect_model_equals_layers(const std::vector<LayerHandle>& layers,
                                       at::IntArrayRef shape, bool whole_numbers = true) {
  const Tensor x = whole_numbers ? at::randint(-2, 3, shape, float32) : at::randn(shape);
  const Sequential model(layers);
  apart(layers, x);  // builds them
  std::vector<Tensor> weights_of_model;
  for (const Variable& variable : model.variables()) {
    weights_of_model.push_back(at::randint(-1, 2, variable.shape(), float32));
  }
  if (whole_numbers) model.set_weights(weights_of_model);
  GradientTape tape({.persistent = true});
  tape.watch(x);
  const auto generator = random::RandomGenerator::from_seed(5);
  const internal::ScopedGenerator scoped(generator);
  const Tensor together = model(x, {.training = true});
  generator.restore({.seed = 5});
  const Tensor one_by_one = apart(layers, x);
  expect_near(together, one_by_one, "output");
  const Tensor weights = at::rand(together.sizes());
  std::vector<Tensor> sources{x};
  for (const Variable& variable : model.trainable_variables()) sources.push_back(variable.value());
  const auto ours = tape.gradient((together * weights).sum(), sources);
  const auto theirs = tape.gradient((one_by_one * weights).sum(), sources);
  for (size_t i = 0; i < sources.size(); ++i) {
    expect_near(ours[i], theirs[i], "source " + std::to_string(i));
  }
  return model.explain();
}

TEST(Segments, EqualTheLayersOneByOne) {
  for (const int64_t batch : {1, 5, 16}) {
    EXPECT_THAT(expect_model_equals_layers(cnn_layers(), {batch, 13, 12, 3}),
                HasSubstr("ran 1 times"));
  }
}

// Every kind of unit, with partial batches: a replica may get one row, or none.
TEST(Segments, TakeBatchesOfAnySize) {
  const std::vector<LayerHandle> exact[] = {
      {Conv2D(4, 3, {.strides = 2, .activation = "relu"}), Flatten(), Dense(3)},
      {Conv2D(4, 3, {.padding = "same", .dilation_rate = 2}), Activation("tanh"), Flatten()},
      {Conv2D(16, 3, {.activation = "relu"}), MaxPooling2D(), Conv2D(5, 3), MaxPooling2D(), ReLU()},
      {Conv2D(3, 1), MaxPooling2D(3), Activation("swish"), GlobalAveragePooling2D()},
      {Conv2D(3, 2), AveragePooling2D(2, {.padding = "same"}), Dropout(0.5), Flatten(), Dense(2)},
      {Reshape({13, 6, 4}), Conv2D(3, 3), LeakyReLU(0.5), Reshape({-1, 12}), Flatten()},
  };
  // Of what rounds, nothing takes signs or maxima; and no bias is taken out again by a mean.
  const std::vector<LayerHandle> rounding[] = {
      {Conv2D(4, 3, {.use_bias = false}), BatchNormalization(), Activation("tanh"),
       AveragePooling2D(2), Flatten(), Dense(3)},
      {Conv2D(3, 3), Flatten(), Dense(6, {.use_bias = false}), BatchNormalization(), Dense(3)},
      {Reshape({13, 24}), LSTM(5)},
      {Reshape({13, 24}), GRU(17, {.return_sequences = true}), LSTM(4, {.go_backwards = true}),
       Dense(3)},
  };
  for (const int64_t batch : {0, 1, 3, 17}) {
    const auto matches = HasSubstr(batch == 0 ? "one plan" : "ran 1 times");
    const std::vector<int64_t> shape{batch, 13, 12, 2};
    for (const auto& layers : exact) {
      EXPECT_THAT(expect_model_equals_layers(layers, shape), matches);
    }
    for (const auto& layers : rounding) {
      EXPECT_THAT(expect_model_equals_layers(layers, shape, /*whole_numbers=*/false), matches);
    }
  }
}

TEST(Segments, EndWhereALayerTakesNoPart) {
  EXPECT_THAT(expect_model_equals_layers(
                  {Conv2D(4, 3, {.activation = "relu"}), Dropout(0.),
                   Lambda([](const Tensor& x) { return x * 2; }),
                   Conv2D(4, 3, {.activation = "tanh"}), MaxPooling2D(3, {.strides = 2}),
                   Conv2D(3, 2), Flatten(), Dense(5, {.activation = "softmax"})},
                  {3, 17, 16, 2}, /*whole_numbers=*/false),
              HasSubstr("ran 1 times"));
}

TEST(Segments, HaveTheActivationsOfLayers) {
  const std::vector<LayerHandle> layers[] = {
      {Conv2D(4, 3, {.activation = "swish"}), Flatten(), LeakyReLU(0.5), Dense(5), ELU(0.5),
       Dropout(0.25), Dense(4, {.activation = "gelu"}), Activation("softplus"),
       Dense(3, {.activation = "sigmoid"}), Dense(2, {.activation = "selu"})},
      {Conv2D(3, 3, {.activation = "tanh"}), Flatten(), Dense(3), Softmax()}};
  for (const std::vector<LayerHandle>& model : layers) {
    const std::string text =
        expect_model_equals_layers(model, {3, 5, 6, 2}, /*whole_numbers=*/false);
    EXPECT_THAT(text, AllOf(HasSubstr("ran 1 times"), Not(HasSubstr("by itself"))));
  }
}

TEST(Segments, AverageAndReshape) {
  EXPECT_THAT(
      expect_model_equals_layers({Reshape({9, 8, -1}), Conv2D(4, 3, {.activation = "relu"}),
                                  AveragePooling2D(2, {.padding = "same"}), Reshape({2, 8, 3}),
                                  Conv2D(5, 2), GlobalAveragePooling2D(), Dense(3)},
                                 {3, 144}),
      AllOf(HasSubstr("ran 1 times"), Not(HasSubstr("by itself")), HasSubstr("2x2 average-pooling"),
            HasSubstr("mean of pixels")));
}

TEST(Segments, NormalizeByBatchInTrainingAlone) {
  const std::vector<LayerHandle> layers{Conv2D(4, 3, {.use_bias = false}),
                                        BatchNormalization({.name = "first"}),
                                        ReLU(),
                                        MaxPooling2D(2),
                                        Flatten(),
                                        Dense(6),
                                        BatchNormalization({.scale = false, .name = "second"}),
                                        Dense(3)};
  const Sequential model(layers);
  const Tensor images = at::randn({37, 8, 8, 2});
  const auto averages = [&] {
    std::vector<Tensor> values;
    for (const Variable& variable : model.non_trainable_variables()) {
      values.push_back(variable.value().detach().clone());
    }
    return values;
  };
  apart(layers, images);
  const std::vector<Tensor> start = model.get_weights();
  const Tensor one_by_one = apart(layers, images);
  const std::vector<Tensor> moved = averages();
  model.set_weights(start);
  expect_near(model(images, {.training = true}), one_by_one, "by batch");
  ASSERT_EQ(moved.size(), 4u);
  for (size_t i = 0; i < moved.size(); ++i) expect_near(averages()[i], moved[i], "average");
  Tensor expected = images;
  for (const LayerHandle& layer : layers) expected = layer(expected, {.training = false});
  expect_near(model(images, {.training = false}), expected, "by averages");
  EXPECT_THAT(model.explain(),
              AllOf(Not(HasSubstr("by itself")), HasSubstr("in training, with gradients: ran 1"),
                    HasSubstr("normalization by batch"), HasSubstr("    normalization\n")));
  // A frozen layer normalizes by its averages, in training, too.
  model.get_layer("first").set_trainable(false);
  model.get_layer("second").set_trainable(false);
  const std::vector<Tensor> before = averages();
  expect_near(model(images, {.training = true}), expected, "frozen");
  for (size_t i = 0; i < before.size(); ++i) EXPECT_TRUE(averages()[i].equal(before[i]));
}

TEST(Segments, EndAtASynchronizedNormalization) {
  const Sequential model(
      {Conv2D(4, 3, {.name = "conv"}), BatchNormalization({.synchronized = true})});
  model(at::randn({2, 8, 8, 2}), {.training = true});
  EXPECT_THAT(model.explain(),
              AllOf(HasSubstr("conv: one plan"), HasSubstr("(it is synchronized")));
}

TEST(Segments, DropInTrainingAlone) {
  const Sequential model({Conv2D(4, 3), Flatten(), Dropout(0.5)});
  const Tensor images = at::randn({2, 12, 12, 1}) + 10;
  const Tensor whole = model(images, {.training = false});
  const Tensor dropped = model(images, {.training = true});
  EXPECT_TRUE(at::where(dropped == 0, whole * 2, dropped).equal(whole * 2));
  EXPECT_FALSE(model(images, {.training = true}).equal(dropped));
  EXPECT_TRUE(model(images).equal(whole));
  EXPECT_THAT(model.explain(), AllOf(HasSubstr("[2,12,12,1], in training, with gradients: ran 2"),
                                     HasSubstr("[2,12,12,1], with gradients: ran 2")));
}

TEST(Segments, DropWhatALayerOfThisSeedDrops) {
  const Sequential model({Conv2D(4, 3), Dropout(0.5, {.seed = 3})});
  const Tensor dropped = model(at::randn({3, 7, 7, 1}), {.training = true});
  const Tensor kept = Dropout(0.5, {.seed = 3})(at::ones({3, 5, 5, 4}), {.training = true});
  EXPECT_TRUE((dropped == 0).equal(kept == 0));
}

TEST(Segments, LeaveASigmoidsLogitsToTheLoss) {
  const Sequential model({Conv2D(4, 3, {.activation = "sigmoid"}), Flatten(),
                          Dense(2, {.activation = "sigmoid", .name = "last"})});
  const Tensor probabilities = model(at::randn({2, 12, 12, 1}));
  const Tensor logits = internal::logits_of_sigmoid(probabilities);
  ASSERT_TRUE(logits.defined());
  EXPECT_TRUE(logits.sigmoid().equal(probabilities));
  EXPECT_THAT(model.explain(), HasSubstr("convolution + bias + sigmoid"));
}

// Of layers that take part in plans and others.
class RandomModel {
 public:
  explicit RandomModel(unsigned seed) : random_(seed) {}

  std::vector<int64_t> input() {
    return {draw(1, 3) == 3 ? draw(9, 40) : draw(1, 8), draw(24, 32), draw(24, 32), draw(1, 5)};
  }
  std::vector<LayerHandle> layers() {
    std::vector<LayerHandle> layers{convolution()};
    if (flip()) layers.push_back(of_images());
    layers.push_back(convolution());
    if (flip()) layers.push_back(of_images());
    layers.push_back(Flatten());
    if (flip()) layers.push_back(Dropout(0.5));
    if (flip()) layers.push_back(Dense(draw(1, 40), {.activation = activation()}));

    layers.push_back(Dense(draw(1, 9), {.activation = flip() ? "softmax" : "linear"}));
    return layers;
  }

 private:
  int64_t draw(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(random_() % static_cast<unsigned>(high - low + 1));
  }
  bool flip() { return draw(0, 1) == 1; }
  const char* activation() { return flip() ? "relu" : "linear"; }

  LayerHandle convolution() {
    const int64_t stride = draw(1, 3) == 3 ? 2 : 1;
    return Conv2D(draw(1, 12), draw(1, 3),
                  {.strides = stride,
                   .padding = flip() ? "same" : "valid",
                   .dilation_rate = stride == 1 && draw(1, 4) == 4 ? 2 : 1,
                   .activation = activation(),
                   .use_bias = flip()});
  }
  LayerHandle of_images() {
    switch (draw(0, 5)) {
      case 0:
        return MaxPooling2D(2, {.padding = "same"});
      case 1:
        return Dropout(0.5);
      case 2:
        return ReLU();
      case 3:
        return AveragePooling2D(2, {.strides = draw(1, 2)});
      default:
        return MaxPooling2D(2, {.strides = draw(1, 2)});
    }
  }

  std::mt19937 random_;
};

TEST(Segments, OfRandomModelsEqualTheLayersOneByOne) {
  int planned = 0;
  for (unsigned seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(seed);
    RandomModel model(seed);
    const std::vector<LayerHandle> layers = model.layers();
    const std::string text = expect_model_equals_layers(layers, model.input());
    planned += text.find("ran 1 times") != std::string::npos ? 1 : 0;
  }
  EXPECT_GE(planned, 50);
}

TEST(Segments, ExplainWhatIsFusedAndWhyNot) {
  const Sequential model({Conv2D(4, 3, {.activation = "relu", .name = "conv"}),
                          MaxPooling2D(2, {.name = "pool"}), Dropout(0.5, {.name = "dropout"}),
                          Lambda([](const Tensor& x) { return x * 2; }, {.name = "lambda"}),
                          Dropout(1., {.name = "all"}),
                          Conv2D(4, 3, {.activity_regularizer = "l2", .name = "penalised"}),
                          Flatten({.name = "flatten"}), Dense(2, {.name = "dense"})});
  model(at::randn({2, 12, 12, 1}));
  model(at::randn({2, 12, 12, 1}));
  model(at::randn({1, 12, 12, 1}));
  EXPECT_THAT(
      model.explain(),
      AllOf(
          HasSubstr("conv, pool, dropout: one plan\n"),
          HasSubstr(
              "  [2,12,12,1], with gradients: ran 2 times\n    3x3 convolution + bias + relu + 2x2 "
              "max-pooling"),
          HasSubstr("  [1,12,12,1], with gradients: ran 1 times\n"),
          HasSubstr("lambda: by itself (its class describes no operation)"),
          HasSubstr("all: by itself (it drops everything)"),
          HasSubstr("penalised: by itself (it has an activity regularizer)"),
          HasSubstr("flatten: by itself (no convolution is beside it)"),
          HasSubstr("dense: by itself (no convolution is beside it)")));
}

TEST(Segments, OtherInputsRunLayerByLayer) {
  const Sequential model(cnn_layers());
  const Tensor images = at::randn({4, 13, 12, 3});
  const Tensor planned = model(images);
  EXPECT_EQ(model(at::empty({0, 13, 12, 3})).sizes(), (std::vector<int64_t>{0, 4}));
  expect_near(model(images.to(float64)), planned, "float64");
  const Sequential wide({Conv2D(4, 3, {.activation = "relu", .dtype = float64}), MaxPooling2D(2),
                         Flatten(), Dense(3)});
  EXPECT_EQ(wide(images.to(float64)).size(1), 3);
  EXPECT_THAT(wide.explain(), HasSubstr("by itself (its dtype is float64)"));
  const Tensor strided = images.permute({0, 2, 1, 3}).contiguous().permute({0, 2, 1, 3});
  EXPECT_TRUE(model(strided).equal(planned));
  EXPECT_THAT(model.explain(), Not(HasSubstr("[0,")));
}

TEST(Segments, AreBuiltAndCheckedAsTheLayers) {
  const Sequential model(cnn_layers());
  EXPECT_THAT(thrown<InvalidArgumentError>([&] {
                model(at::randn({2, 2, 2, 3}));
              }),
              HasSubstr("'first'"));
  model(at::randn({2, 13, 12, 3}));
  EXPECT_THAT(*model.get_layer("second").output_spec()->leaf().shape(), ElementsAre(-1, 3, 3, 12));
  EXPECT_EQ(model.count_params(), 8 * 27 + 8 + 12 * 72 + 12 + 108 * 9 + 9 + 9 * 4 + 4);
  EXPECT_THAT(thrown<InvalidArgumentError>([&] {
                model(at::randn({2, 13, 12, 2}));
              }),
              AllOf(HasSubstr("'first'"), HasSubstr("[2,13,12,2]")));
  EXPECT_THAT(thrown<InvalidArgumentError>([&] {
                model(at::randn({2, 15, 12, 3}));
              }),
              HasSubstr("'hidden'"));
  EXPECT_THAT(thrown<InvalidArgumentError>([&] {
                model(at::randn({2, 12}));
              }),
              HasSubstr("'first'"));
}

TEST(Segments, FollowTheLayersThatAreAdded) {
  const Sequential model({Conv2D(2, 3), Flatten()});
  const Tensor images = at::randn({2, 5, 5, 1});
  EXPECT_EQ(model(images).size(1), 18);
  model.add(Dense(3));
  EXPECT_EQ(model(images).size(1), 3);
  model.pop();
  EXPECT_EQ(model(images).size(1), 18);
}

TEST(Segments, OfFunctionalModelsAreWhatNobodyElseReads) {
  const SymbolicTensor image = Input({12, 12, 1});
  const Conv2D layer(4, 3, {.activation = "relu", .name = "conv"});
  const SymbolicTensor features = layer(image);
  const SymbolicTensor pooled = MaxPooling2D(2, {.name = "pool"})(features);
  const Functional both(image, {pooled, features});
  const Functional alone(image, pooled);
  const Tensor images = at::randn({2, 12, 12, 1});
  const Structure outputs = both(Structure(images));
  EXPECT_GE(outputs[1].tensor().min().item<double>(), 0);
  expect_near(outputs[0].tensor(), alone(images), "pooled");
  EXPECT_THAT(both.explain(), AllOf(HasSubstr("conv: one plan"), HasSubstr("pool: by itself")));
  EXPECT_THAT(alone.explain(), HasSubstr("conv, pool: one plan"));
}

std::vector<Tensor> train() {
  return weights_of_two_replicas([] { return Sequential(cnn_layers()); }, {12, 13, 12, 3}, 7);
}

TEST(Segments, GiveTheSameBitsOnEveryReplicaAndInEveryRun) {
  const std::vector<Tensor> weights = train();
  EXPECT_TRUE(weights[0].equal(weights[1]));
  EXPECT_TRUE(weights[0].equal(train()[0]));
}

}  // namespace
}  // namespace cohort::keras::layers
