#include "cohort/keras/losses/crossentropy.h"

#include <ATen/ops/log_softmax.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <string>

#include "cohort/core/error.h"
#include "cohort/keras/losses/regression.h"
#include "cohort/keras/testing_keras.h"
#include "cohort/ops/gradient_tape.h"

namespace cohort::keras::losses {
namespace {

using ::testing::AllOf;
using ::testing::DoubleNear;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

const SparseCategoricalCrossentropyOptions kLogits = {.from_logits = true,
                                                      .reduction = Reduction::NONE};
const SparseCategoricalCrossentropyOptions kProbabilities = {.reduction = Reduction::NONE};

TEST(SparseCategoricalCrossentropy, OfLogits) {
  const Tensor loss = SparseCategoricalCrossentropy(kLogits)(numbers({2, 0}, {2}, int64),
                                                             numbers({1, 2, 3, 1, 2, 3}, {2, 3}));
  EXPECT_THAT(elements(loss), ElementsAre(DoubleNear(0.407606, 1e-6), DoubleNear(2.407606, 1e-6)));
}

TEST(SparseCategoricalCrossentropy, OfProbabilities) {
  const Tensor y_pred = numbers({0.05, 0.95, 0, 0.1, 0.8, 0.1}, {2, 3});
  const Tensor loss = SparseCategoricalCrossentropy(kProbabilities)(numbers({1, 2}), y_pred);
  EXPECT_THAT(elements(loss), ElementsAre(DoubleNear(0.0513, 1e-4), DoubleNear(2.3026, 1e-4)));
  EXPECT_THAT(SparseCategoricalCrossentropy()(numbers({1, 2}), y_pred).item<double>(),
              DoubleNear(1.177, 1e-3));
}

TEST(BinaryCrossentropy, OfLogitsOfZeroHasTheGradientOfASigmoid) {
  const Tensor logits = numbers({0, 0}, {2, 1});
  GradientTape tape;
  tape.watch(logits);
  const BinaryCrossentropy loss({.from_logits = true, .reduction = Reduction::SUM});
  const Tensor slopes = tape.gradient(loss(numbers({1, 0}, {2, 1}), logits), logits);
  EXPECT_THAT(elements(slopes), ElementsAre(-0.5, 0.5));
}

TEST(SparseCategoricalCrossentropy, ImpossiblePredictionsStayFinite) {
  const Tensor loss =
      SparseCategoricalCrossentropy(kProbabilities)(numbers({1}), numbers({1, 0}, {1, 2}, float64));
  EXPECT_THAT(elements(loss), ElementsAre(DoubleNear(-std::log(1e-7), 1e-5)));
}

TEST(SparseCategoricalCrossentropy, FractionsOfLabelsAreCutOffWithOneWarning) {
  const SparseCategoricalCrossentropy loss(kLogits);
  const Tensor y_pred = numbers({1, 2, 3, 1, 2, 3}, {2, 3});
  testing::internal::CaptureStderr();
  EXPECT_TRUE(loss(numbers({0, 2}), y_pred).equal(loss(numbers({0, 2}, {2}, int64), y_pred)));
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  testing::internal::CaptureStderr();
  const Tensor cut_off = loss(numbers({0.5, 2.9}), y_pred);
  loss(numbers({0.5, 2.9}), y_pred);
  const std::string log = testing::internal::GetCapturedStderr();
  EXPECT_TRUE(cut_off.equal(loss(numbers({0, 2}), y_pred)));
  EXPECT_THAT(log, HasSubstr("labels have fractions"));
  EXPECT_EQ(log.find("labels have fractions"), log.rfind("labels have fractions"));
}

TEST(SparseCategoricalCrossentropy, TakesAnyIntegerDtype) {
  const Tensor logits = numbers({1, 2, 3}, {1, 3});
  for (const DType dtype : {uint8, int32, int64, float32}) {
    const Tensor loss = SparseCategoricalCrossentropy(kLogits)(numbers({2}, {1}, dtype), logits);
    EXPECT_THAT(elements(loss), ElementsAre(DoubleNear(0.407606, 1e-6)));
  }
}

TEST(SparseCategoricalCrossentropy, LabelsMayHaveMoreDimensions) {
  const SparseCategoricalCrossentropy loss(kLogits);
  const Tensor logits = numbers({0, 9, 9, 0, 9, 0, 0, 9}, {1, 2, 2, 2});
  const Tensor right = numbers({1, 0, 0, 1}, {1, 2, 2}, uint8);
  EXPECT_THAT(loss(right, logits).sizes(), ElementsAre(1, 2, 2));
  EXPECT_THAT(elements(loss(right, logits)), Each(DoubleNear(0, 1e-3)));
  EXPECT_THAT(elements(loss(1 - right, logits)), Each(DoubleNear(9, 1e-3)));
  EXPECT_THAT(loss(right.unsqueeze(-1), logits).sizes(), ElementsAre(1, 2, 2));
}

TEST(SparseCategoricalCrossentropy, EmptyBatch) {
  const Tensor loss = SparseCategoricalCrossentropy(kLogits)(at::zeros({0}, at::dtype(at::kLong)),
                                                             at::zeros({0, 3}));
  EXPECT_THAT(loss.sizes(), ElementsAre(0));
}

TEST(SparseCategoricalCrossentropy, GradientIsSoftmaxMinusOneHot) {
  GradientTape tape;
  const Tensor logits = numbers({0, 0}, {1, 2});
  tape.watch(logits);
  const Tensor loss = SparseCategoricalCrossentropy(kLogits)(numbers({1}), logits);
  EXPECT_THAT(elements(tape.gradient(loss, logits)), ElementsAre(0.5, -0.5));
}

TEST(SparseCategoricalCrossentropy, LabelsOutOfRangeAreNamed) {
  const SparseCategoricalCrossentropy loss(kLogits);
  EXPECT_THAT(thrown<InvalidArgumentError>([&] {
                loss(numbers({1, 10}, {2}, int64), at::ones({2, 10}));
              }),
              AllOf(HasSubstr("label 10"), HasSubstr("[1]"), HasSubstr("[0, 10)")));
  EXPECT_THAT(thrown<InvalidArgumentError>([&] {
                loss(numbers({0, 1, -1, 0}, {2, 2}, int64), at::ones({2, 2, 3}));
              }),
              AllOf(HasSubstr("label -1"), HasSubstr("[1,0]"), HasSubstr("3 classes")));
}

TEST(SparseCategoricalCrossentropy, ShapesMustMatch) {
  const SparseCategoricalCrossentropy loss(kLogits);
  EXPECT_THAT(thrown<InvalidArgumentError>([&] {
                loss(at::ones({3}), at::ones({2, 5}));
              }),
              AllOf(HasSubstr("[3]"), HasSubstr("[2,5]")));
}

// A cast would drop their imaginary parts.
TEST(SparseCategoricalCrossentropy, OneHotLabelsAreSentToTheOtherLoss) {
  const SparseCategoricalCrossentropy loss(kLogits);
  const Tensor one_hot = numbers({1, 0, 0, 0, 1, 0}, {2, 3});
  EXPECT_THAT(thrown<InvalidArgumentError>([&] {
                loss(one_hot, at::zeros({2, 3}));
              }),
              AllOf(HasSubstr("for CategoricalCrossentropy"), HasSubstr("argmax(-1)")));
  EXPECT_THAT(thrown<InvalidArgumentError>([&] {
                loss(at::zeros({3}), at::zeros({2, 3}));
              }),
              Not(HasSubstr("argmax")));
}

TEST(CategoricalCrossentropy, NumbersOfClassesAreSentToTheOtherLoss) {
  for (const Tensor& labels : {at::zeros({2}, int64), at::zeros({2, 1}, int64)}) {
    EXPECT_THAT(
        thrown<InvalidArgumentError>([&] {
          CategoricalCrossentropy({.reduction = Reduction::NONE})(labels, at::zeros({2, 3}));
        }),
        HasSubstr("for SparseCategoricalCrossentropy"));
  }
}

// What is logged, once in a process: each runs in one of its own.
class ScoresAsProbabilitiesDeathTest : public ::testing::Test {
 protected:
  ScoresAsProbabilitiesDeathTest() { GTEST_FLAG_SET(death_test_style, "threadsafe"); }

  static void expect_warnings(int count, const Loss& loss, const Tensor& labels,
                              const Tensor& predictions) {
    const auto run = [&] {
      for (int i = 0; i < 3; ++i) loss(labels, predictions);
      std::exit(0);
    };
    const auto is_said = [count](const std::string& log) {
      int found = 0;
      for (size_t at = log.find("from_logits"); at != log.npos;
           at = log.find("from_logits", at + 1))
        ++found;
      return found == 2 * count;  // the line names the option twice
    };
    EXPECT_EXIT(run(), ::testing::ExitedWithCode(0), ::testing::Truly(is_said));
  }
};

TEST_F(ScoresAsProbabilitiesDeathTest, AreToldOnceByTheSparseLoss) {
  expect_warnings(1, SparseCategoricalCrossentropy(kProbabilities), numbers({0}, {1}, int64),
                  numbers({-1, 3}, {1, 2}));
}

TEST_F(ScoresAsProbabilitiesDeathTest, AreToldOnceByTheBinaryLoss) {
  expect_warnings(1, BinaryCrossentropy({.reduction = Reduction::NONE}), numbers({1, 0}, {2, 1}),
                  numbers({1.5, 0.5}, {2, 1}));
}

TEST_F(ScoresAsProbabilitiesDeathTest, AreToldByTheCategoricalLossWhereTheyAreNegative) {
  const CategoricalCrossentropy loss({.reduction = Reduction::NONE});
  expect_warnings(1, loss, numbers({0, 1}, {1, 2}), numbers({-1, 3}, {1, 2}));
  expect_warnings(0, loss, numbers({0, 1}, {1, 2}), numbers({1, 3}, {1, 2}));  // shares of a sum
}

TEST_F(ScoresAsProbabilitiesDeathTest, ProbabilitiesAndLogitsAreNone) {
  expect_warnings(0, SparseCategoricalCrossentropy(kProbabilities), numbers({0}, {1}, int64),
                  numbers({0, 1.0000001}, {1, 2}));
  expect_warnings(0, SparseCategoricalCrossentropy(kLogits), numbers({0}, {1}, int64),
                  numbers({-1, 3}, {1, 2}));
}

TEST(SparseCategoricalCrossentropy, ComplexLabelsAreRefused) {
  const SparseCategoricalCrossentropy sparse(kLogits);
  const Tensor y_pred = at::ones({2, 3});
  EXPECT_THAT(
      thrown<InvalidArgumentError>([&] { sparse(at::zeros({2}, at::kComplexFloat), y_pred); }),
      AllOf(HasSubstr("sparse_categorical_crossentropy"), HasSubstr("complex numbers")));
  EXPECT_THAT(thrown<InvalidArgumentError>([&] {
                MeanSquaredError()(at::zeros({2, 3}, at::kComplexFloat), y_pred);
              }),
              AllOf(HasSubstr("mean_squared_error"), HasSubstr("complex numbers")));
}

TEST(BinaryCrossentropy, OfProbabilities) {
  const BinaryCrossentropy loss({.reduction = Reduction::NONE});
  const Tensor value = loss(numbers({0, 1, 0, 0}, {2, 2}), numbers({.6, .4, .4, .6}, {2, 2}));
  EXPECT_THAT(elements(value), ElementsAre(DoubleNear(0.9163, 1e-4), DoubleNear(0.7136, 1e-4)));
}

TEST(BinaryCrossentropy, OfLogits) {
  const Tensor y_true = numbers({0, 1, 0, 0});
  const Tensor y_pred = numbers({-18.6, 0.51, 2.94, -12.8});
  EXPECT_THAT(BinaryCrossentropy({.from_logits = true})(y_true, y_pred).item<double>(),
              DoubleNear(0.8654, 1e-4));
  const Tensor extreme = numbers({1000, -1000}, {2, 1});
  const Tensor loss = BinaryCrossentropy({.from_logits = true, .reduction = Reduction::NONE})(
      numbers({1, 1}, {2, 1}), extreme);
  EXPECT_THAT(elements(loss), ElementsAre(0, 1000));
}

TEST(BinaryCrossentropy, LabelSmoothingMovesLabelsTowardsOneHalf) {
  // With full smoothing every label is 0.5.
  const BinaryCrossentropy loss({.from_logits = true, .label_smoothing = 1});
  EXPECT_THAT(loss(numbers({1, 0}, {2, 1}), numbers({0, 0}, {2, 1})).item<double>(),
              DoubleNear(std::log(2), 1e-6));
  EXPECT_THAT(loss(numbers({1}, {1, 1}), numbers({2}, {1, 1})).item<double>(),
              DoubleNear(std::log1p(std::exp(2)) - 0.5 * 2, 1e-5));
  EXPECT_THAT(thrown<InvalidArgumentError>([] { BinaryCrossentropy({.label_smoothing = 2}); }),
              HasSubstr("label_smoothing is 2"));
}

TEST(BinaryCrossentropy, TakesIntegerLabels) {
  const BinaryCrossentropy loss({.from_logits = true});
  EXPECT_THAT(loss(numbers({1}, {1}, int64), numbers({0}, {1, 1})).item<double>(),
              DoubleNear(std::log(2), 1e-6));
}

}  // namespace
}  // namespace cohort::keras::losses
