#include "cohort/keras/layers/activation_layers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cohort/keras/layers/elementwise.h"
#include "cohort/keras/layers/merging.h"
#include "cohort/keras/testing_keras.h"
#include "cohort/ops/gradient_tape.h"

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

TEST(ReLU, HasItsNegativeSlopeAtZero) {
  const Tensor x = numbers({0, 1, -1});
  GradientTape tape({.persistent = true});
  tape.watch(x);
  const auto slopes = [&](const LayerHandle& layer) {
    return elements(tape.gradient(layer(x), x));
  };
  EXPECT_THAT(slopes(ReLU({.negative_slope = 0.5})), ElementsAre(0.5, 1, 0.5));
  EXPECT_THAT(slopes(ReLU({.max_value = 6, .negative_slope = 0.5})), ElementsAre(0, 1, 0.5));
  EXPECT_THAT(slopes(Activation("selu")),
              ElementsAre(DoubleNear(1.050701, 1e-6), DoubleNear(1.050701, 1e-6),
                          DoubleNear(0.646769, 1e-6)));
}

TEST(Maximum, GivesTheGradientToTheFirstOfEqualInputs) {
  const Tensor x = numbers({1, 2}, {1, 2}), y = numbers({1, 1}, {1, 2});
  for (const LayerHandle& layer : {LayerHandle(Maximum()), LayerHandle(Minimum())}) {
    GradientTape tape({.persistent = true});
    tape.watch(x);
    tape.watch(y);
    const Structure merged = layer(tuple(x, y));
    EXPECT_EQ(elements(tape.gradient(merged.tensor(), x))[0], 1);
    EXPECT_EQ(elements(tape.gradient(merged.tensor(), y))[0], 0);
  }
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
