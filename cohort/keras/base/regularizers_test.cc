#include "cohort/keras/base/regularizers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "cohort/core/error.h"
#include "cohort/keras/testing_keras.h"
#include "cohort/ops/gradient_tape.h"

namespace cohort::keras::regularizers {
namespace {

using ::testing::DoubleNear;
using ::testing::HasSubstr;

TEST(Regularizer, Formulas) {
  const Tensor w = numbers({1, -2, 3});
  EXPECT_THAT(L2(0.5)(w).item<double>(), DoubleNear(7, 1e-6));
  EXPECT_THAT(L1(0.5)(w).item<double>(), DoubleNear(3, 1e-6));
  EXPECT_THAT(L1L2(0.5, 0.5)(w).item<double>(), DoubleNear(10, 1e-6));
  EXPECT_EQ(L1L2()(w).item<double>(), 0);
  EXPECT_THAT(Regularizer("l2")(w).item<double>(), DoubleNear(0.14, 1e-6));
  EXPECT_THAT(Regularizer("l1_l2")(w).item<double>(), DoubleNear(0.2, 1e-6));
}

TEST(Regularizer, L2HasGradientsOfAnyOrder) {
  const Tensor w = numbers({1, -2, 3});
  GradientTape outer;
  outer.watch(w);
  Tensor first;
  {
    GradientTape tape;
    first = tape.gradient(L2(0.5)(w), w);
  }
  EXPECT_THAT(elements(first), ::testing::ElementsAre(1, -2, 3));
  EXPECT_THAT(elements(outer.gradient(first.pow(2).sum(), w)), ::testing::ElementsAre(2, -4, 6));
}

TEST(Regularizer, HoldsAnyOfThemOrNone) {
  EXPECT_FALSE(Regularizer());
  const Regularizer largest = [](const Tensor& x) { return x.max(); };
  EXPECT_TRUE(largest);
  EXPECT_EQ(largest(numbers({1, 4})).item<double>(), 4);
}

TEST(Regularizer, RefusesWhatIsNoFactor) {
  EXPECT_THAT(thrown<InvalidArgumentError>([] { L2{std::numeric_limits<double>::infinity()}; }),
              HasSubstr("inf"));
  EXPECT_THAT(thrown<InvalidArgumentError>([] { Regularizer("l3"); }), HasSubstr("'l3'"));
}

}  // namespace
}  // namespace cohort::keras::regularizers
