#include "cohort/keras/base/activations.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <cmath>

#include "cohort/core/error.h"
#include "cohort/keras/testing_keras.h"
#include "cohort/ops/gradient_tape.h"

namespace cohort::keras::activations {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Activation, NamesMeanTheFunctionsOfKeras) {
  const Tensor x = numbers({-2, 0, 3});
  EXPECT_THAT(elements(Activation()(x)), ElementsAre(-2, 0, 3));
  EXPECT_THAT(elements(Activation("linear")(x)), ElementsAre(-2, 0, 3));
  EXPECT_THAT(elements(Activation("relu")(x)), ElementsAre(0, 0, 3));
  EXPECT_THAT(elements(Activation("relu6")(numbers({-1, 5, 9}))), ElementsAre(0, 5, 6));
  EXPECT_THAT(elements(Activation("sigmoid")(numbers({0}))), ElementsAre(0.5));
  EXPECT_THAT(elements(Activation("tanh")(numbers({1}))), ElementsAre(DoubleNear(0.76159, 1e-5)));
  EXPECT_THAT(elements(Activation("elu")(numbers({-1}))), ElementsAre(DoubleNear(-0.63212, 1e-5)));
  EXPECT_THAT(elements(Activation("swish")(numbers({1}))), ElementsAre(DoubleNear(0.73106, 1e-5)));
  EXPECT_THAT(elements(Activation("softplus")(numbers({0}))),
              ElementsAre(DoubleNear(0.69315, 1e-5)));
  EXPECT_THAT(elements(Activation("softsign")(numbers({-3, 0, 1}))), ElementsAre(-0.75, 0, 0.5));
  EXPECT_THAT(elements(Activation("exponential")(numbers({0, 1}))),
              ElementsAre(1, DoubleNear(2.71828, 1e-5)));
  EXPECT_THAT(elements(Activation("hard_sigmoid")(numbers({-3, 0, 1, 3}))),
              ElementsAre(0, 0.5, DoubleNear(0.7, 1e-6), 1));
  EXPECT_THAT(elements(Activation("mish")(numbers({-1, 0, 1}))),
              ElementsAre(DoubleNear(-0.30340, 1e-5), 0, DoubleNear(0.86510, 1e-5)));
}

// A product's gradient by transposed weights, which lies in another order than what was given to
// gelu.
TEST(Activation, GelusGradientIsThatOfItsDefinition) {
  const GradientTape tape({.persistent = true});
  const Tensor x = numbers({-2, -1, 0, 1, 2, 3}, {2, 3}).set_requires_grad(true);
  const auto gradient = [&](const Tensor& y) {
    return torch::autograd::grad({y.t().matmul(y).sum()}, {x})[0];
  };
  EXPECT_TRUE(gradient(Activation("gelu")(x))
                  .allclose(gradient(x * ((x / std::sqrt(2.)).erf() + 1) / 2), 1e-5, 1e-5));
}

TEST(Activation, SoftmaxSumsToOneOverTheLastAxis) {
  const Tensor y = Activation("softmax")(numbers({0, 0, 1, 1}, {2, 2}));
  EXPECT_THAT(elements(y), ElementsAre(0.5, 0.5, 0.5, 0.5));
  EXPECT_THAT(thrown<InvalidArgumentError>([] {
                Activation("softmax")(numbers({1, 2}));
              }),
              HasSubstr("[2]"));
}

TEST(Activation, TakesAnyFunction) {
  const Activation square = [](const Tensor& x) { return x * x; };
  EXPECT_THAT(elements(square(numbers({3}))), ElementsAre(9));
}

TEST(Activation, UnknownNameComesWithTheNearestAndTheKnownOnes) {
  const std::string text = thrown<InvalidArgumentError>([] { Activation("reluu"); });
  EXPECT_THAT(text, HasSubstr("'reluu'; the nearest is 'relu'"));
  EXPECT_THAT(text, HasSubstr("sigmoid"));
}

}  // namespace
}  // namespace cohort::keras::activations
