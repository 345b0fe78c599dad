// The losses of the common list: values by hand here; tests/interop compares values and gradients
// with TensorFlow's.
#include "cohort/keras/losses/losses.h"

#include <ATen/ops/ones.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "cohort/core/error.h"
#include "cohort/keras/testing_keras.h"
#include "cohort/ops/gradient_tape.h"

namespace cohort::keras::losses {
namespace {

using ::testing::AllOf;
using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pointwise;

constexpr Reduction kNone = Reduction::NONE;

double only(const Tensor& loss) { return loss.item<double>(); }

TEST(CategoricalCrossentropy, OfProbabilitiesThatDoNotSumToOne) {
  const Tensor y_true = numbers({0, 1, 0, 0, 0, 1}, {2, 3});
  const Tensor y_pred = numbers({1, 18, 1, 2, 16, 2}, {2, 3});
  const Tensor loss = CategoricalCrossentropy({.reduction = kNone})(y_true, y_pred);
  EXPECT_THAT(elements(loss), Pointwise(DoubleNear(1e-6), {-std::log(0.9), -std::log(0.1)}));
}

TEST(CategoricalCrossentropy, OfLogitsIsThatOfTheirProbabilities) {
  const Tensor y_true = numbers({0.25, 0.75, 0, 0, 0, 1}, {2, 3});
  const Tensor logits = numbers({1, 2, 3, -1, 0, 1}, {2, 3});
  const Tensor of_logits =
      CategoricalCrossentropy({.from_logits = true, .label_smoothing = 0.2})(y_true, logits);
  const Tensor of_probabilities =
      CategoricalCrossentropy({.label_smoothing = 0.2})(y_true, logits.softmax(-1));
  EXPECT_NEAR(only(of_logits), only(of_probabilities), 1e-6);
}

TEST(CategoricalCrossentropy, ClassesMayLieAlongAnotherAxis) {
  const Tensor y_true = numbers({0, 1, 1, 0}, {2, 2});
  const Tensor logits = numbers({1, 2, 3, 5}, {2, 2});
  EXPECT_THAT(elements(CategoricalCrossentropy(
                  {.from_logits = true, .axis = 0, .reduction = kNone})(y_true, logits)),
              Pointwise(DoubleNear(1e-5),
                        elements(CategoricalCrossentropy({.from_logits = true, .reduction = kNone})(
                            y_true.t(), logits.t()))));
}

TEST(CategoricalCrossentropy, RefusesWhatDoesNotFit) {
  const CategoricalCrossentropy loss;
  EXPECT_THAT(thrown<InvalidArgumentError>([&] {
                loss(numbers({1, 2}), at::ones({2, 3}));
              }),
              AllOf(HasSubstr("[2,3]"), HasSubstr("SparseCategoricalCrossentropy")));
  EXPECT_THAT(thrown<InvalidArgumentError>([&] {
                CategoricalCrossentropy({.axis = 2})(at::ones({2, 3}), at::ones({2, 3}));
              }),
              HasSubstr("axis 2"));
  EXPECT_THAT(thrown<InvalidArgumentError>([] { CategoricalCrossentropy({.label_smoothing = 2}); }),
              HasSubstr("label_smoothing is 2"));
}

TEST(Losses, OfRegression) {
  const Tensor y_true = numbers({1, 2, 4, 0}, {2, 2});
  const Tensor y_pred = numbers({2, 2, 1, 3}, {2, 2});  // errors 1, 0, -3, 3
  const auto of = [&](const Loss& loss) { return elements(loss(y_true, y_pred)); };
  EXPECT_THAT(of(MeanAbsoluteError({.reduction = kNone})), ElementsAre(0.5, 3));
  EXPECT_THAT(of(Huber({.delta = 2, .reduction = kNone})), ElementsAre(0.25, 4));
  EXPECT_THAT(of(LogCosh({.reduction = kNone})),
              Pointwise(DoubleNear(1e-6), {std::log(std::cosh(1)) / 2, std::log(std::cosh(3))}));
  EXPECT_THAT(
      of(MeanSquaredLogarithmicError({.reduction = kNone})),
      Pointwise(DoubleNear(1e-5), {std::pow(std::log(1.5), 2) / 2,
                                   (std::pow(std::log(0.4), 2) + std::pow(std::log(4), 2)) / 2}));
  EXPECT_THAT(elements(MeanAbsolutePercentageError({.reduction = kNone})(numbers({2, -4}, {1, 2}),
                                                                         numbers({1, -5}, {1, 2}))),
              ElementsAre(37.5));
}

TEST(LogCosh, OfFloat64IsExact) {
  EXPECT_NEAR(only(LogCosh()(numbers({0}, {1, 1}, float64), numbers({12}, {1, 1}, float64))),
              12 + std::log1p(std::exp(-24.)) - std::log(2), 1e-14);
}

TEST(LogCosh, OfLargeErrorsDoesNotOverflow) {
  EXPECT_NEAR(only(LogCosh()(numbers({0}, {1, 1}), numbers({-500}, {1, 1}))), 500 - std::log(2),
              1e-3);
}

TEST(CosineSimilarity, IsMinusTheCosine) {
  const Tensor y_true = numbers({3, 0, 0, 0}, {2, 2});
  const Tensor y_pred = numbers({2, 2, 5, 5}, {2, 2});
  EXPECT_THAT(elements(CosineSimilarity({.reduction = kNone})(y_true, y_pred)),
              Pointwise(DoubleNear(1e-6), {-std::sqrt(0.5), 0.0}));
  EXPECT_THAT(thrown<InvalidArgumentError>([&] { CosineSimilarity({.axis = -3})(y_true, y_pred); }),
              HasSubstr("axis -3"));
}

TEST(Hinge, TakesLabelsOfEitherKind) {
  const Tensor y_pred = numbers({0.5, -2, 0.5, 3}, {2, 2});
  for (const Tensor& y_true : {numbers({1, -1, -1, 1}, {2, 2}), numbers({1, 0, 0, 1}, {2, 2})}) {
    EXPECT_THAT(elements(Hinge({.reduction = kNone})(y_true, y_pred)), ElementsAre(0.25, 0.75));
    EXPECT_THAT(elements(SquaredHinge({.reduction = kNone})(y_true, y_pred)),
                ElementsAre(0.125, 1.125));
  }
}

TEST(CategoricalHinge, ComparesTheBestWrongClassWithTheRightOne) {
  const Tensor y_true = numbers({0, 1, 0, 1, 0, 0}, {2, 3});
  const Tensor y_pred = numbers({.25, .5, .125, 3, 1, 1}, {2, 3});
  EXPECT_THAT(elements(CategoricalHinge({.reduction = kNone})(y_true, y_pred)),
              ElementsAre(0.75, 0));
}

TEST(Divergences, OfDistributionsAndCounts) {
  const Tensor y_true = numbers({0.5, 0.5}, {1, 2});
  const Tensor y_pred = numbers({0.25, 0.75}, {1, 2});
  EXPECT_NEAR(only(KLDivergence()(y_true, y_pred)), 0.5 * std::log(2) + 0.5 * std::log(2. / 3),
              1e-6);
  EXPECT_NEAR(only(Poisson()(numbers({2, 0}, {1, 2}), numbers({1, 3}, {1, 2}))), 2, 1e-6);
}

// Every one of them gives a gradient in the dtype of the predictions, and a loss of an empty batch.
TEST(Losses, HaveGradientsInBothDtypes) {
  for (const char* name : {"BinaryCrossentropy", "CategoricalCrossentropy", "CategoricalHinge",
                           "CosineSimilarity", "Hinge", "Huber", "KLDivergence", "LogCosh",
                           "MeanAbsoluteError", "MeanAbsolutePercentageError", "MeanSquaredError",
                           "MeanSquaredLogarithmicError", "Poisson", "SquaredHinge"}) {
    for (const DType dtype : {float32, float64}) {
      const Loss loss = get(name);
      const Tensor y_pred = numbers({.2, .7, .3, .5}, {2, 2}, dtype);
      GradientTape tape;
      tape.watch(y_pred);
      const Tensor gradient =
          tape.gradient(loss(numbers({1, 0, 0, 1}, {2, 2}, int64), y_pred), y_pred);
      EXPECT_EQ(gradient.scalar_type(), dtype) << name;
      EXPECT_GT(gradient.abs().sum().item<double>(), 0) << name;
      const Tensor empty = numbers({}, {0, 2}, dtype);
      EXPECT_EQ(only(loss(empty, empty)), 0) << name;
      EXPECT_THAT(thrown<InvalidArgumentError>([&] {
                    loss(at::ones({3, 4}), at::ones({3, 2}));
                  }),
                  AllOf(HasSubstr(loss.name()), HasSubstr("[3,4]"), HasSubstr("[3,2]")));
    }
  }
}

TEST(Huber, RefusesADeltaOfZero) {
  EXPECT_THAT(thrown<InvalidArgumentError>([] { Huber({.delta = 0}); }), HasSubstr("delta is 0"));
}

TEST(GetLoss, KnowsClassesFunctionsAndShortForms) {
  const Tensor y_true = numbers({0, 1}, {1, 2});
  const Tensor y_pred = numbers({1, 3}, {1, 2});
  for (const char* name : {"MeanAbsoluteError", "mean_absolute_error", "mae", "MAE"}) {
    EXPECT_EQ(get(name).name(), "mean_absolute_error");
    EXPECT_EQ(only(get(name)(y_true, y_pred)), 1.5);
  }
  const Loss named = get("huber", {.reduction = Reduction::SUM, .name = "mine"});
  EXPECT_EQ(named.name(), "mine");
  EXPECT_EQ(named.reduction(), Reduction::SUM);
  EXPECT_EQ(get("huber").name(), "huber_loss");
}

TEST(GetLoss, NamesTheNearestOfAnUnknownName) {
  EXPECT_THAT(thrown<InvalidArgumentError>([] { get("mean_absolut_eror"); }),
              AllOf(HasSubstr("'mean_absolut_eror'"), HasSubstr("'mean_absolute_error'"),
                    HasSubstr("SparseCategoricalCrossentropy")));
  EXPECT_THAT(thrown<InvalidArgumentError>([] { get("hubr"); }), HasSubstr("'huber'"));
}

}  // namespace
}  // namespace cohort::keras::losses
