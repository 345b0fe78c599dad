// Adadelta, Adagrad, Adamax, Lion, Nadam and Ftrl: steps computed by hand, and options. Their
// numbers over many steps are compared with TensorFlow's in tests/interop.
#include <gmock/gmock.h>

#include <cmath>

#include "cohort/core/error.h"
#include "cohort/optim/adadelta.h"
#include "cohort/optim/adagrad.h"
#include "cohort/optim/adamax.h"
#include "cohort/optim/ftrl.h"
#include "cohort/optim/lion.h"
#include "cohort/optim/nadam.h"
#include "cohort/optim/testing_variable.h"

namespace cohort::optim {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

TEST(AdagradTest, DividesByTheRootOfAllSquares) {
  const auto rule = make_adagrad({.initial_accumulator_value = 0, .epsilon = 1e-30});
  TestingVariable<double> variable(*rule, {1});
  EXPECT_DOUBLE_EQ(variable.step(*rule, 0.1, {3}), 0.9);
  EXPECT_DOUBLE_EQ(variable.step(*rule, 0.1, {4}), 0.9 - 0.1 * 4 / 5);
  EXPECT_DOUBLE_EQ(variable.slots.at(0).at(0), 25);
  EXPECT_DOUBLE_EQ(make_adagrad()->slots().at(0).initial_value, 0.1);
}

TEST(AdadeltaTest, StepsAreAsLongAsThoseBefore) {
  const auto rule = make_adadelta({.rho = 0.5, .epsilon = 0.25});
  TestingVariable<double> variable(*rule, {1});
  const double delta = -0.5 * 2 / std::sqrt(0.5 * 4 + 0.25);
  EXPECT_DOUBLE_EQ(variable.step(*rule, 1, {2}), 1 + delta);
  EXPECT_DOUBLE_EQ(variable.slots.at(1).at(0), 0.5 * delta * delta);
}

TEST(AdamaxTest, DividesByTheLargestGradient) {
  const auto rule = make_adamax({.beta_1 = 0.5, .beta_2 = 0.5, .epsilon = 0});
  TestingVariable<double> variable(*rule, {1});
  EXPECT_DOUBLE_EQ(variable.step(*rule, 0.1, {-4}), 1.1);
  EXPECT_DOUBLE_EQ(variable.slots.at(1).at(0), 4);
  variable.step(*rule, 0.1, {1});
  EXPECT_DOUBLE_EQ(variable.slots.at(1).at(0), 2);
}

// The paper's algorithm 2, with its interpolation for the step and for the momentum.
TEST(LionTest, StepsByTheSignOfAnInterpolation) {
  const auto rule = make_lion({.beta_1 = 0.5, .beta_2 = 0.75});
  TestingVariable<double> variable(*rule, {1});
  EXPECT_DOUBLE_EQ(variable.step(*rule, 0.125, {-4}), 1.125);  // sign(0.5 * 0 + 0.5 * -4)
  EXPECT_DOUBLE_EQ(variable.slots.at(0).at(0), -1);            // 0.75 * 0 + 0.25 * -4
  EXPECT_DOUBLE_EQ(variable.step(*rule, 0.125, {0.5}), 1.25);  // sign(0.5 * -1 + 0.5 * 0.5)
  EXPECT_DOUBLE_EQ(variable.slots.at(0).at(0), -0.625);
  EXPECT_DOUBLE_EQ(variable.step(*rule, 0.125, {0.625}), 1.25);  // sign(0)
  variable.step(*rule, 0.125, {std::nan("")});
  EXPECT_TRUE(std::isnan(variable.step(*rule, 0.125, {1})));
}

TEST(NadamTest, FirstStepLooksAhead) {
  const auto rule = make_nadam({.epsilon = 0});
  TestingVariable<double> variable(*rule, {1});
  const auto u = [](double t) { return 0.9 * (1 - 0.5 * std::pow(0.96, t)); };
  const double m_hat = u(2) * 0.1 / (1 - u(1) * u(2)) + 1;
  EXPECT_NEAR(variable.step(*rule, 0.1, {1}), 1 - 0.1 * m_hat, 1e-12);
  EXPECT_NEAR(rule->derived_scalars(2).at(0).value, u(1) * u(2), 1e-15);
  EXPECT_EQ(rule->derived_scalars(2).at(0).name, "_u_product");
  EXPECT_EQ(rule->derived_scalars(0).at(0).value, 1);
}

// After a million steps, too, and without a million multiplications.
TEST(NadamTest, ProductOfManyStepsGoesToZero) {
  const auto rule = make_nadam({.beta_1 = 0.999});
  EXPECT_LT(rule->derived_scalars(1000000).at(0).value, 1e-300);
  const auto product = [&](int64_t t) { return rule->derived_scalars(t).at(0).value; };
  EXPECT_NEAR(product(1500) / product(1499), 0.999, 1e-12);
  EXPECT_DOUBLE_EQ(rule->prepare(0.5, int64_t{1} << 40).more_float64[2], 1);
}

TEST(FtrlTest, AStrongL1MakesWeightsZero) {
  const auto rule = make_ftrl({.l1_regularization_strength = 10});
  TestingVariable<double> variable(*rule, {1});
  EXPECT_EQ(variable.step(*rule, 0.1, {0.5}), 0);
}

TEST(FtrlTest, WithoutPenaltiesTheFirstStepIsAdagrads) {
  const auto rule = make_ftrl({.initial_accumulator_value = 0.5});
  TestingVariable<double> variable(*rule, {0});
  EXPECT_DOUBLE_EQ(variable.step(*rule, 0.1, {2}), -0.1 * 2 / std::sqrt(4.5));
}

TEST(AdaptiveRulesTest, RefuseInvalidOptions) {
  const auto message = [](const char* text) {
    return ThrowsMessage<InvalidArgumentError>(HasSubstr(text));
  };
  EXPECT_THAT([] { make_adagrad({.initial_accumulator_value = -1}); },
              message("AdagradOptions.initial_accumulator_value"));
  EXPECT_THAT([] { make_adagrad({.initial_accumulator_value = 0, .epsilon = 0}); },
              message("both 0"));
  EXPECT_THAT([] { make_adadelta({.rho = 1.5}); }, message("AdadeltaOptions.rho"));
  EXPECT_THAT([] { make_adamax({.beta_1 = 1}); }, message("AdamaxOptions.beta_1"));
  EXPECT_THAT([] { make_lion({.beta_1 = 0}); }, message("LionOptions.beta_1"));
  EXPECT_THAT([] { make_lion({.beta_1 = 1.5}); }, message("LionOptions.beta_1"));
  EXPECT_THAT([] { make_lion({.beta_2 = 1}); }, message("LionOptions.beta_2"));
  EXPECT_THAT([] { make_nadam({.beta_2 = 1}); }, message("NadamOptions.beta_2"));
  EXPECT_THAT([] { make_ftrl({.learning_rate_power = 0.5}); },
              message("FtrlOptions.learning_rate_power"));
  EXPECT_THAT([] { make_ftrl({.l1_regularization_strength = -0.5}); },
              message("FtrlOptions.l1_regularization_strength"));
  EXPECT_THAT([] { make_ftrl()->prepare(0, 0); }, message("must not be 0"));
}

}  // namespace
}  // namespace cohort::optim
