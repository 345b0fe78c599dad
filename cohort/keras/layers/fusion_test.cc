#include "cohort/keras/layers/fusion.h"

#include <ATen/ops/allclose.h>
#include <ATen/ops/full.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cohort/core/testing_errors.h"
#include "cohort/keras/functional.h"
#include "cohort/keras/layers/layers.h"
#include "cohort/keras/sequential.h"
#include "cohort/keras/testing_keras.h"
#include "cohort/ops/gradient_tape.h"

namespace cohort::keras::layers {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Values and gradients of `layers` as a model and called one after the other.
void expect_model_equals_layers(const std::vector<LayerHandle>& layers, const Tensor& images) {
  const Sequential model(layers);
  GradientTape tape({.persistent = true});
  tape.watch(images);
  const Tensor together = model(images, {.training = true});
  Tensor apart = images;
  for (const LayerHandle& layer : layers) apart = layer(apart, {.training = true});
  ASSERT_TRUE(at::allclose(together, apart, 1e-9, 1e-9));

  const Tensor weights = at::rand(together.sizes(), together.options());
  std::vector<Tensor> sources{images};
  for (const Variable& variable : model.trainable_variables()) sources.push_back(variable.value());
  const auto ours = tape.gradient((together * weights).sum(), sources);
  const auto theirs = tape.gradient((apart * weights).sum(), sources);
  for (size_t i = 0; i < sources.size(); ++i) {
    EXPECT_TRUE(at::allclose(ours[i], theirs[i], 1e-9, 1e-9)) << "source " << i;
  }
}

Tensor random_images(at::IntArrayRef sizes) { return at::randn(sizes, float64); }

Conv2D convolution(int64_t filters, Size2D size, Conv2DOptions options = {}) {
  options.dtype = float64;
  options.bias_initializer = "random_normal";
  return Conv2D(filters, size, options);
}

TEST(Fusion, OfConvolutionsAndPooling) {
  expect_model_equals_layers({convolution(4, 3, {.activation = "relu"}), MaxPooling2D(),
                              convolution(5, 3, {.activation = "relu"}), MaxPooling2D()},
                             random_images({3, 28, 27, 2}));
}

TEST(Fusion, WithoutBiasAndActivation) {
  expect_model_equals_layers({convolution(4, 3, {.use_bias = false}), MaxPooling2D({3, 2})},
                             random_images({2, 9, 12, 3}));
}

// Few distinct ids, which come again, and so many that the rows themselves are looked up.
TEST(Fusion, OfAnEmbeddingAndTheMeanOfItsRows) {
  for (const int64_t rows : {5, 1000}) {
    const std::vector<LayerHandle> layers{Embedding(rows, 4, {.dtype = float64}),
                                          GlobalAveragePooling1D()};
    const Sequential model(layers);
    const Tensor ids = at::randint(rows, {6, 3}, int64);
    GradientTape tape({.persistent = true});
    const Tensor together = model(ids);
    const Tensor apart = layers[1](layers[0](ids));
    EXPECT_TRUE(at::allclose(together, apart, 1e-5, 1e-6));
    const auto gradient = [&](const Tensor& means) {
      return tape.gradient((means * means).sum(), model.trainable_variables())[0].to_dense();
    };
    EXPECT_TRUE(at::allclose(gradient(together), gradient(apart), 1e-5, 1e-6));
    EXPECT_THAT(thrown<InvalidArgumentError>([&] {
                  model(at::full({2, 3}, rows, int64));
                }),
                HasSubstr("is outside [0, "));
  }
}

// One unit, whose kernel the distinct rows are multiplied by, and so many that the means are.
TEST(Fusion, OfAnEmbeddingTheMeanOfItsRowsAndADenseLayer) {
  for (const int64_t rows : {5, 1000}) {
    for (const int64_t units : {1, 200}) {
      const std::vector<LayerHandle> layers{
          Embedding(rows, 24, {.dtype = float64}), GlobalAveragePooling1D(),
          Dense(units,
                {.activation = "tanh", .bias_initializer = "random_normal", .dtype = float64})};
      const Sequential model(layers);
      const Tensor ids = at::randint(rows, {6, 3}, int64);
      GradientTape tape({.persistent = true});
      const Tensor together = model(ids);
      const Tensor apart = layers[2](layers[1](layers[0](ids)));
      EXPECT_TRUE(at::allclose(together, apart, 1e-9, 1e-9));
      const auto gradients = [&](const Tensor& outputs) {
        return tape.gradient((outputs * outputs).sum(), model.trainable_variables());
      };
      const auto ours = gradients(together), theirs = gradients(apart);
      EXPECT_TRUE(at::allclose(ours[0].to_dense(), theirs[0].to_dense(), 1e-9, 1e-9));
      EXPECT_TRUE(at::allclose(ours[1], theirs[1], 1e-9, 1e-9));
      EXPECT_TRUE(at::allclose(ours[2], theirs[2], 1e-9, 1e-9));
      EXPECT_THAT(*layers[1].get()->output_spec()->leaf().shape(), ElementsAre(-1, 24));
    }
  }
}

// What the fused layers are built and checked by are tensors of the right form.
TEST(Fusion, OfAnEmbeddingItsMeanAndADenseLayerKeepsErrorsAndLosses) {
  const Sequential model({Embedding(4, 3), GlobalAveragePooling1D(),
                          Dense(1, {.kernel_initializer = "ones", .activity_regularizer = "l2"})});
  const Tensor ids = at::randint(4, {2, 5}, int64);
  const Tensor outputs = model(ids);
  ASSERT_EQ(model.losses().size(), 1u);
  EXPECT_TRUE(at::allclose(model.losses()[0], 0.01 * (outputs * outputs).sum() / 2));
  EXPECT_THAT(thrown<InvalidArgumentError>([&] {
                model(at::full({2, 3}, 4, int64));
              }),
              HasSubstr("is outside [0, "));
}

TEST(Fusion, StridesDilationsAndOverlappingWindows) {
  expect_model_equals_layers(
      {convolution(3, {3, 2}, {.strides = 2, .activation = "relu"}),
       MaxPooling2D(3, {.strides = 2}),
       convolution(2, 2, {.dilation_rate = 2, .activation = "relu"}), MaxPooling2D()},
      random_images({2, 40, 39, 3}));
}

TEST(Fusion, BordersAreKept) {
  expect_model_equals_layers(
      {convolution(4, 3, {.padding = "same", .activation = "relu"}),
       MaxPooling2D(2, {.padding = "same"}), convolution(4, 3, {.activation = "relu"}),
       MaxPooling2D(2, {.padding = "same"})},
      random_images({2, 11, 13, 3}));
}

TEST(Fusion, OfAnActivationLayer) {
  expect_model_equals_layers({convolution(4, 3), Activation("relu"), MaxPooling2D()},
                             random_images({2, 10, 10, 3}));
}

TEST(Fusion, OtherActivationsStayWhereTheyAre) {
  const MaxPooling2D pool;
  const Conv2D tanh = convolution(4, 3, {.activation = "tanh"});
  const Conv2D relu = convolution(4, 3, {.activation = "relu"});
  const Conv2D penalised = convolution(4, 3, {.activation = "relu", .activity_regularizer = "l2"});
  const auto chain = [&](const LayerHandle& first, const LayerHandle& second) {
    Layer* const layers[] = {first.get(), second.get()};
    return internal::fused_chain(layers);
  };
  EXPECT_EQ(chain(relu, pool), 2u);
  EXPECT_EQ(chain(tanh, pool), 0u);
  EXPECT_EQ(chain(penalised, pool), 0u);
  EXPECT_EQ(chain(pool, relu), 0u);
}

TEST(Fusion, SpecsAreThoseOfTheLayersThemselves) {
  const Conv2D first = convolution(4, 3, {.activation = "relu"});
  const Conv2D second = convolution(5, 3, {.activation = "relu"});
  const Sequential model({first, MaxPooling2D(), second, MaxPooling2D()});
  model(random_images({2, 28, 28, 1}));
  EXPECT_THAT(*first.get()->output_spec()->leaf().shape(), ElementsAre(-1, 26, 26, 4));
  EXPECT_THAT(*second.get()->output_spec()->leaf().shape(), ElementsAre(-1, 11, 11, 5));
}

TEST(Fusion, ErrorsNameTheLayerAndWhatTheCallerPassed) {
  const Sequential model(
      {convolution(4, 3, {.activation = "relu", .name = "edges"}), MaxPooling2D()});
  model(random_images({2, 9, 9, 1}));
  EXPECT_THAT(thrown<InvalidArgumentError>([&] {
                model(random_images({2, 9, 9, 3}));
              }),
              ::testing::AllOf(HasSubstr("'edges'"), HasSubstr("[2,9,9,3]")));
  EXPECT_THAT(thrown<InvalidArgumentError>([&] {
                model(random_images({2, 2, 2, 1}));
              }),
              HasSubstr("'edges'"));
}

TEST(Fusion, InFunctionalModelsOnlyWhereNobodyElseReads) {
  const SymbolicTensor image = Input({12, 12, 1}, {.dtype = float64});
  const Conv2D layer = convolution(4, 3, {.activation = "relu"});
  const SymbolicTensor features = layer(image);
  const SymbolicTensor pooled = MaxPooling2D()(features);
  const Functional both(image, {pooled, features});
  const Functional alone(image, pooled);
  const Tensor images = random_images({2, 12, 12, 1});
  const Structure outputs = both(Structure(images));
  EXPECT_GE(outputs[1].tensor().min().item<double>(), 0);
  EXPECT_TRUE(at::allclose(outputs[0].tensor(), alone(images), 1e-9, 1e-9));
}

}  // namespace
}  // namespace cohort::keras::layers
