#include "cohort/optim/rmsprop.h"

#include <gmock/gmock.h>

#include "cohort/core/error.h"
#include "cohort/optim/testing_variable.h"

namespace cohort::optim {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

// The expected numbers come from the formula in 40-digit decimal arithmetic.
void expect_sequence(const RmspropOptions& options, const std::vector<double>& expected) {
  const auto rule = make_rmsprop(options);
  TestingVariable<double> variable(*rule, {1});
  const std::vector<double> gradients = {0.5, -0.25, 1.5};
  for (size_t i = 0; i < gradients.size(); ++i) {
    EXPECT_NEAR(variable.step(*rule, 0.1, {gradients[i]}), expected[i], 1e-14) << "step " << i;
  }
}

TEST(RmspropTest, FollowsTheFormula) {
  expect_sequence({}, {0.68377286643679669, 0.83121456617156952, 0.5317382517401843});
}

TEST(RmspropTest, WithMomentum) {
  expect_sequence({.momentum = 0.5},
                  {0.68377286643679669, 0.67310099938996781, 0.36828875143516815});
}

TEST(RmspropTest, Centered) {
  expect_sequence({.centered = true},
                  {0.66666740740493824, 0.81514561326796964, 0.49725417116445758});
}

TEST(RmspropTest, CenteredWithMomentum) {
  expect_sequence({.momentum = 0.5, .centered = true},
                  {0.66666740740493824, 0.6484793169704387, 0.32149382964967693});
}

TEST(RmspropTest, SlotsHaveKerasNamesAndOrder) {
  const auto rule = make_rmsprop({.momentum = 0.5, .centered = true});
  TestingVariable<double> variable(*rule, {1});
  for (double gradient : {0.5, -0.25, 1.5}) variable.step(*rule, 0.1, {gradient});
  ASSERT_EQ(rule->slots().size(), 3u);
  EXPECT_EQ(rule->slots()[0].name, "velocity");
  EXPECT_NEAR(variable.slots[0][0], 0.250875, 1e-15);
  EXPECT_EQ(rule->slots()[1].name, "momentum");
  EXPECT_NEAR(variable.slots[1][0], 0.32698548732076177, 1e-14);
  EXPECT_EQ(rule->slots()[2].name, "average_gradient");
  EXPECT_NEAR(variable.slots[2][0], 0.168, 1e-15);
}

TEST(RmspropTest, HasKerasDefaults) {
  const RmspropOptions options;
  EXPECT_EQ(options.learning_rate, 0.001);
  EXPECT_EQ(options.rho, 0.9);
  EXPECT_EQ(options.momentum, 0);
  EXPECT_EQ(options.epsilon, 1e-7);
  EXPECT_FALSE(options.centered);
}

TEST(RmspropTest, RefusesInvalidOptions) {
  EXPECT_THAT([] { make_rmsprop({.rho = 1.1}); },
              ThrowsMessage<InvalidArgumentError>(
                  HasSubstr("RmspropOptions.rho must lie in [0, 1], but is 1.1")));
  EXPECT_THAT([] { make_rmsprop({.momentum = -1}); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("RmspropOptions.momentum")));
}

}  // namespace
}  // namespace cohort::optim
