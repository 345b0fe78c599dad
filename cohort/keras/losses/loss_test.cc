#include "cohort/keras/losses/loss.h"

#include <ATen/ops/ones.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cohort/core/error.h"
#include "cohort/distribute/testing_devices.h"
#include "cohort/keras/losses/losses.h"
#include "cohort/keras/testing_keras.h"

namespace cohort::keras::losses {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

const Tensor kTrue = numbers({0, 1, 0, 0}, {2, 2});
const Tensor kPredicted = numbers({1, 1, 3, 0}, {2, 2});  // losses 0.5 and 4.5

TEST(MeanSquaredError, AveragesOverTheLastAxis) {
  EXPECT_THAT(elements(MeanSquaredError({.reduction = Reduction::NONE})(kTrue, kPredicted)),
              ElementsAre(0.5, 4.5));
  EXPECT_THAT(
      MeanSquaredError({.reduction = Reduction::NONE})(at::ones({2, 3, 4}), at::ones({2, 3, 4}))
          .sizes(),
      ElementsAre(2, 3));
}

TEST(MeanSquaredError, DropsALastDimensionOfOne) {
  EXPECT_EQ(MeanSquaredError()(numbers({1, 2}), numbers({1, 4}, {2, 1})).item<double>(), 2);
}

TEST(Reduction, IsWhatTheOptionsSay) {
  EXPECT_EQ(MeanSquaredError({.reduction = Reduction::SUM})(kTrue, kPredicted).item<double>(), 5);
  EXPECT_EQ(MeanSquaredError()(kTrue, kPredicted).item<double>(), 2.5);
  EXPECT_EQ(MeanSquaredError({.reduction = Reduction::SUM_OVER_BATCH_SIZE})(kTrue, kPredicted)
                .item<double>(),
            2.5);
}

TEST(Reduction, OfAnEmptyBatchIsZero) {
  const Tensor empty = numbers({}, {0, 2});
  EXPECT_EQ(MeanSquaredError()(empty, empty).item<double>(), 0);
  EXPECT_THAT(MeanSquaredError({.reduction = Reduction::NONE})(empty, empty).sizes(),
              ElementsAre(0));
}

TEST(SampleWeight, MultipliesEachLoss) {
  const MeanSquaredError loss({.reduction = Reduction::NONE});
  EXPECT_THAT(elements(loss(kTrue, kPredicted, numbers({2, 3}))), ElementsAre(1, 13.5));
  EXPECT_THAT(elements(loss(kTrue, kPredicted, numbers({2, 3}, {2, 1}))), ElementsAre(1, 13.5));
  EXPECT_THAT(elements(loss(kTrue, kPredicted, numbers({2}, {}))), ElementsAre(1, 9));
  EXPECT_THAT(thrown<InvalidArgumentError>([&] {
                loss(kTrue, kPredicted, numbers({1, 2, 3}));
              }),
              AllOf(HasSubstr("mean_squared_error"), HasSubstr("[3]"), HasSubstr("[2]")));
}

TEST(Loss, ShapesMustMatch) {
  EXPECT_THAT(thrown<InvalidArgumentError>([] {
                MeanSquaredError()(at::ones({3}), at::ones({3, 2}));
              }),
              AllOf(HasSubstr("[3]"), HasSubstr("[3,2]")));
  EXPECT_THAT(thrown<InvalidArgumentError>([] { MeanSquaredError()(Tensor(), at::ones({3})); }),
              HasSubstr("undefined"));
}

TEST(Loss, TakesAFunctionOfYourOwn) {
  const Loss absolute(
      [](const Tensor& y_true, const Tensor& y_pred) { return (y_true - y_pred).abs().mean(-1); },
      {.reduction = Reduction::SUM, .name = "absolute"});
  EXPECT_EQ(absolute(kTrue, kPredicted).item<double>(), 2);
  EXPECT_EQ(absolute.name(), "absolute");
}

TEST(Reduction, MeansAreRefusedUnderAStrategy) {
  const auto strategy = distribute::mirrored(2);
  for (const Reduction reduction : {Reduction::AUTO, Reduction::SUM_OVER_BATCH_SIZE}) {
    const MeanSquaredError loss({.reduction = reduction});
    EXPECT_THAT(
        thrown<InvalidArgumentError>([&] { strategy.run([&] { loss(kTrue, kPredicted); }); }),
        AllOf(HasSubstr("NONE"), HasSubstr("SUM"), HasSubstr("compute_average_loss")));
    EXPECT_EQ(loss(kTrue, kPredicted).item<double>(), 2.5);  // outside, it works
  }
  const auto sums = strategy.run(
      [&] { return MeanSquaredError({.reduction = Reduction::SUM})(kTrue, kPredicted); });
  EXPECT_EQ(sums.value(1).item<double>(), 5);
}

TEST(Loss, OneThatGivesNothingIsNamed) {
  const Loss nothing([](const Tensor&, const Tensor&) { return Tensor(); }, {.name = "nothing"});
  EXPECT_THAT(thrown<InvalidArgumentError>([&] { nothing(at::ones({2}), at::ones({2})); }),
              ::testing::AllOf(::testing::HasSubstr("'nothing'"),
                               ::testing::HasSubstr("undefined tensor")));
}

}  // namespace
}  // namespace cohort::keras::losses
