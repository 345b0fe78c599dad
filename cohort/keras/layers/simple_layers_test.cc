// Dense, Flatten, Reshape, Activation, Rescaling, Dropout, Add and Concatenate.
#include <ATen/ops/arange.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cohort/keras/layers/layers.h"
#include "cohort/keras/testing_keras.h"
#include "cohort/ops/random.h"

namespace cohort::keras::layers {
namespace {

using ::testing::AllOf;
using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Dense, MultipliesAndAddsItsBias) {
  Dense dense(2, {.activation = "relu"});
  dense(at::ones({1, 3}));
  dense.set_weights({numbers({1, -1, 2, -2, 3, -3}, {3, 2}), numbers({0.5, 1})});
  const Tensor y = dense(numbers({1, 1, 1, 0, 0, 1}, {2, 3}));
  EXPECT_THAT(elements(y), ElementsAre(6.5, 0, 3.5, 0));
}

TEST(Dense, WorksOnTheLastAxisOfAnyRank) {
  Dense dense(5);
  EXPECT_THAT(dense(at::ones({2, 3, 4})).sizes(), ElementsAre(2, 3, 5));
  EXPECT_THAT(dense(at::zeros({0, 3, 4})).sizes(), ElementsAre(0, 3, 5));
  EXPECT_EQ(Dense(2, {.use_bias = false})(at::ones({1, 3})).size(1), 2);
}

TEST(Dense, ConvertsFloatingInputsToItsDtype) {
  EXPECT_EQ(Dense(1)(at::ones({1, 2}, at::dtype(at::kDouble))).scalar_type(), float32);
  EXPECT_EQ(Dense(1, {.dtype = float64})(at::ones({1, 2})).scalar_type(), float64);
}

TEST(Dense, ErrorsNameLayerAndShapes) {
  const Dense dense(1, {.name = "out"});
  dense(at::ones({1, 4}));
  EXPECT_THAT(thrown<InvalidArgumentError>([&] {
                dense(at::ones({2, 5}));
              }),
              AllOf(HasSubstr("'out'"), HasSubstr("4"), HasSubstr("[2,5]")));
  EXPECT_THAT(thrown<InvalidArgumentError>([&] { dense(at::ones({4})); }),
              AllOf(HasSubstr("'out'"), HasSubstr("rank 2")));
  EXPECT_THAT(thrown<InvalidArgumentError>([] { Dense(0); }), HasSubstr("units is 0"));
}

TEST(Flatten, KeepsTheBatchAndTheOrderOfKeras) {
  const Tensor x = at::arange(12).reshape({2, 1, 3, 2});
  EXPECT_THAT(Flatten()(x).sizes(), ElementsAre(2, 6));
  EXPECT_EQ(elements(Flatten()(x)), elements(x));
  EXPECT_THAT(Flatten()(at::zeros({0, 2, 3})).sizes(), ElementsAre(0, 6));
  EXPECT_THAT(Flatten()(at::zeros({4})).sizes(), ElementsAre(4, 1));
}

TEST(Reshape, KeepsTheBatch) {
  EXPECT_THAT(Reshape({3, -1})(at::zeros({2, 12})).sizes(), ElementsAre(2, 3, 4));
  EXPECT_THAT(Reshape({3, -1})(at::zeros({0, 12})).sizes(), ElementsAre(0, 3, 4));
  EXPECT_THAT(thrown<InvalidArgumentError>([] {
                Reshape({5}, {.name = "five"})(at::zeros({2, 12}));
              }),
              AllOf(HasSubstr("'five'"), HasSubstr("[12]"), HasSubstr("[5]")));
  EXPECT_THAT(thrown<InvalidArgumentError>([] { Reshape({-1, -1}); }), HasSubstr("[-1,-1]"));
}

TEST(Rescaling, ConvertsImages) {
  const Tensor y = Rescaling(1.0 / 255, {.offset = -1})(numbers({0, 255}, {1, 2}, uint8));
  EXPECT_EQ(y.scalar_type(), float32);
  EXPECT_THAT(elements(y), ElementsAre(-1, DoubleNear(0, 1e-6)));
}

TEST(ActivationLayer, AppliesItsFunction) {
  EXPECT_THAT(elements(Activation("relu")(numbers({-1, 2}))), ElementsAre(0, 2));
}

TEST(Dropout, ActsInTrainingOnly) {
  const Dropout dropout(0.25, {.seed = 3});
  const Tensor x = at::ones({10'000});
  EXPECT_EQ(elements(dropout(x)), elements(x));
  const Tensor y = dropout(x, {.training = true});
  const double kept = (y > 0).sum().item<double>() / 10'000;
  EXPECT_THAT(kept, DoubleNear(0.75, 0.02));
  EXPECT_THAT(y.max().item<double>(), DoubleNear(1 / 0.75, 1e-6));
  EXPECT_NE(elements(y), elements(dropout(x, {.training = true})));
}

TEST(Dropout, SeedDecidesTheMask) {
  const Tensor x = at::ones({100});
  EXPECT_EQ(elements(Dropout(0.5, {.seed = 3})(x, {.training = true})),
            elements(Dropout(0.5, {.seed = 3})(x, {.training = true})));
  EXPECT_THAT(thrown<InvalidArgumentError>([] { Dropout(1.5); }), HasSubstr("1.5"));
}

// As Keras: [batch, features] beside each step, also where there are as many steps as examples.
TEST(Merging, AlignsTheBatchesOfInputsOfUnlikeRank) {
  const Tensor steps = numbers({1, 2, 3, 4}, {2, 2, 1});
  const Tensor examples = numbers({10, 20}, {2, 1});
  EXPECT_THAT(elements(Add()(tuple(steps, examples))), ElementsAre(11, 12, 23, 24));
  EXPECT_THAT(elements(Subtract()(tuple(examples, steps))), ElementsAre(9, 8, 17, 16));
  EXPECT_THAT(elements(Average()(tuple(steps, examples))), ElementsAre(5.5, 6, 11.5, 12));
  EXPECT_THAT(elements(Multiply()(tuple(at::ones({2, 3, 1}), examples))),
              ElementsAre(10, 10, 10, 20, 20, 20));
}

TEST(Merging, TakesTuples) {
  const Tensor a = numbers({1, 2}, {1, 2});
  const Tensor b = numbers({10, 20}, {1, 2});
  EXPECT_THAT(elements(Add()(tuple(a, b))), ElementsAre(11, 22));
  EXPECT_THAT(elements(Concatenate()(tuple(a, b))), ElementsAre(1, 2, 10, 20));
  EXPECT_THAT(Structure(Concatenate({.axis = 0})(tuple(a, b))).tensor().sizes(), ElementsAre(2, 2));
  EXPECT_THAT(thrown<InvalidArgumentError>([&] { Add({.name = "sum"})(Structure(a)); }),
              AllOf(HasSubstr("'sum'"), HasSubstr("[1,2]")));
  EXPECT_THAT(thrown<InvalidArgumentError>([&] {
                Add({.name = "sum"})(tuple(a, at::ones({1, 3})));
              }),
              AllOf(HasSubstr("'sum'"), HasSubstr("[1,3]")));
}

}  // namespace
}  // namespace cohort::keras::layers
