#include "cohort/optim/sgd.h"

#include <gmock/gmock.h>

#include <limits>

#include "cohort/core/error.h"
#include "cohort/optim/testing_variable.h"

namespace cohort::optim {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

TEST(SgdTest, PlainStepIsLearningRateTimesGradient) {
  const auto rule = make_sgd();
  TestingVariable<double> variable(*rule, {1, 2});
  EXPECT_TRUE(rule->slots().empty());
  variable.step(*rule, 0.5, {4, -2});
  EXPECT_EQ(variable.param, (std::vector<double>{-1, 3}));
}

TEST(SgdTest, MomentumAccumulates) {
  const auto rule = make_sgd({.momentum = 0.9});
  TestingVariable<double> variable(*rule, {1});
  EXPECT_DOUBLE_EQ(variable.step(*rule, 0.1, {0.5}), 0.95);
  EXPECT_DOUBLE_EQ(variable.step(*rule, 0.1, {-0.25}), 0.93);
  EXPECT_DOUBLE_EQ(variable.step(*rule, 0.1, {1.5}), 0.762);
  EXPECT_EQ(rule->slots().at(0).name, "m");
  EXPECT_DOUBLE_EQ(variable.slots.at(0).at(0), -0.168);
}

TEST(SgdTest, NesterovLooksAhead) {
  const auto rule = make_sgd({.momentum = 0.9, .nesterov = true});
  TestingVariable<double> variable(*rule, {1});
  EXPECT_DOUBLE_EQ(variable.step(*rule, 0.1, {0.5}), 0.905);
  EXPECT_DOUBLE_EQ(variable.step(*rule, 0.1, {-0.25}), 0.912);
  EXPECT_DOUBLE_EQ(variable.step(*rule, 0.1, {1.5}), 0.6108);
}

TEST(SgdTest, NesterovWithoutMomentumIsPlain) {
  const auto rule = make_sgd({.nesterov = true});
  TestingVariable<double> variable(*rule, {1});
  EXPECT_EQ(variable.step(*rule, 0.5, {4}), -1);
}

TEST(SgdTest, HasKerasDefaults) {
  EXPECT_EQ(SgdOptions().learning_rate, 0.01);
  EXPECT_EQ(SgdOptions().momentum, 0);
  EXPECT_FALSE(SgdOptions().nesterov);
}

TEST(SgdTest, RefusesInvalidOptions) {
  EXPECT_THAT([] { make_sgd({.momentum = 1.5}); },
              ThrowsMessage<InvalidArgumentError>(
                  HasSubstr("SgdOptions.momentum must lie in [0, 1], but is 1.5")));
  EXPECT_THAT([] { make_sgd({.learning_rate = -1}); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("SgdOptions.learning_rate")));
  EXPECT_THAT([] { make_sgd({.momentum = std::numeric_limits<double>::quiet_NaN()}); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("nan")));
}

}  // namespace
}  // namespace cohort::optim
