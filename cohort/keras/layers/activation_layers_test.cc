#include "cohort/keras/layers/activation_layers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cohort/keras/testing_keras.h"

namespace cohort::keras::layers {
namespace {

using ::testing::AllOf;
using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pointwise;

const std::vector<double> kInputs = {-2, -1, 0, 1, 2, 8};

std::vector<double> outputs_of(const LayerHandle& layer) {
  return elements(layer(numbers(kInputs, {2, 3})));
}

TEST(ReLU, CutsBelowAndAbove) {
  EXPECT_THAT(outputs_of(ReLU()), ElementsAre(0, 0, 0, 1, 2, 8));
  EXPECT_THAT(outputs_of(ReLU(6.)), ElementsAre(0, 0, 0, 1, 2, 6));
  EXPECT_THAT(outputs_of(ReLU({.negative_slope = 0.5})), ElementsAre(-1, -0.5, 0, 1, 2, 8));
  EXPECT_THAT(outputs_of(ReLU({.max_value = 6, .negative_slope = 0.5, .threshold = 1})),
              ElementsAre(-1.5, -1, -0.5, 0, 2, 6));
}

TEST(ReLU, RefusesNegativeOptions) {
  EXPECT_THAT(thrown<InvalidArgumentError>([] { ReLU(-1.); }),
              AllOf(HasSubstr("max_value"), HasSubstr("-1")));
  EXPECT_THAT(thrown<InvalidArgumentError>([] { ReLU({.threshold = -1}); }),
              HasSubstr("threshold"));
}

TEST(LeakyReLU, HasASlopeBelowZero) {
  EXPECT_THAT(outputs_of(LeakyReLU()), Pointwise(DoubleNear(1e-6), {-0.6, -0.3, 0., 1., 2., 8.}));
  EXPECT_THAT(outputs_of(LeakyReLU(0.5)), ElementsAre(-1, -0.5, 0, 1, 2, 8));
}

TEST(ELU, BendsBelowZero) {
  EXPECT_THAT(outputs_of(ELU(2.)),
              Pointwise(DoubleNear(1e-5), {-1.72933, -1.26424, 0., 1., 2., 8.}));
}

TEST(Softmax, AddsUpToOneOverItsAxes) {
  const Tensor x = numbers({1, 2, 3, 4, 5, 7}, {1, 2, 3});
  const auto sums = [&](const LayerHandle& layer, const std::vector<int64_t>& axes) {
    return elements(layer(x).sum(axes));
  };
  EXPECT_THAT(sums(Softmax(), {2}), Pointwise(DoubleNear(1e-6), {1., 1.}));
  EXPECT_THAT(sums(Softmax({.axis = {1}}), {1}), Pointwise(DoubleNear(1e-6), {1., 1., 1.}));
  EXPECT_THAT(sums(Softmax({.axis = {1, 2}}), {1, 2}), Pointwise(DoubleNear(1e-6), {1.}));
  EXPECT_THROW(Softmax({.axis = {}}), InvalidArgumentError);
  EXPECT_THAT(thrown<InvalidArgumentError>([&] { Softmax({.name = "s"})(x.to(int64)); }),
              AllOf(HasSubstr("'s'"), HasSubstr("floating")));
}

}  // namespace
}  // namespace cohort::keras::layers
