#include "cohort/optim/adam.h"

#include <gmock/gmock.h>

#include <cmath>

#include "cohort/core/error.h"
#include "cohort/optim/testing_variable.h"

namespace cohort::optim {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

std::vector<std::string> slot_names(const UpdateRule& rule) {
  std::vector<std::string> names;
  for (const SlotSpec& spec : rule.slots()) names.push_back(spec.name);
  return names;
}

// The expected numbers come from the formula in 40-digit decimal arithmetic.
TEST(AdamTest, FollowsTheFormula) {
  const auto rule = make_adam();
  TestingVariable<double> variable(*rule, {1});
  EXPECT_NEAR(variable.step(*rule, 0.1, {0.5}), 0.90000063245153206, 1e-14);
  EXPECT_NEAR(variable.step(*rule, 0.1, {-0.25}), 0.87336707920792167, 1e-14);
  EXPECT_NEAR(variable.step(*rule, 0.1, {1.5}), 0.80631715515990843, 1e-14);
  EXPECT_EQ(slot_names(*rule), (std::vector<std::string>{"m", "v"}));
  EXPECT_NEAR(variable.slots[0][0], 0.168, 1e-15);
  EXPECT_NEAR(variable.slots[1][0], 0.00256193775, 1e-15);
}

TEST(AdamTest, AmsgradKeepsTheLargestVelocity) {
  const auto rule = make_adam({.beta_2 = 0.6, .amsgrad = true});
  TestingVariable<double> variable(*rule, {1});
  EXPECT_NEAR(variable.step(*rule, 0.1, {2}), 0.90000000790569357, 1e-14);
  EXPECT_NEAR(variable.step(*rule, 0.1, {-0.25}), 0.84840495542399863, 1e-14);
  EXPECT_NEAR(variable.step(*rule, 0.1, {0.5}), 0.79945661981030947, 1e-14);
  EXPECT_EQ(slot_names(*rule), (std::vector<std::string>{"m", "v", "vhat"}));
  EXPECT_NEAR(variable.slots[1][0], 0.691, 1e-15);
  EXPECT_NEAR(variable.slots[2][0], 1.6, 1e-15);
}

TEST(AdamTest, Float32StepSizeIsComputedInFloat32) {
  const StepScalars scalars = make_adam()->prepare(0.001, 0);
  const float expected = 0.001f * std::sqrt(1 - 0.999f) / (1 - 0.9f);
  EXPECT_EQ(scalars.step_size_float32, expected);
  EXPECT_NEAR(scalars.step_size_float64, 0.001 * std::sqrt(0.001) / 0.1, 1e-17);
}

TEST(AdamTest, BiasCorrectionFadesAfterManyIterations) {
  EXPECT_DOUBLE_EQ(make_adam()->prepare(0.25, int64_t{1} << 40).step_size_float64, 0.25);
}

TEST(AdamTest, HasKerasDefaults) {
  const AdamOptions options;
  EXPECT_EQ(options.learning_rate, 0.001);
  EXPECT_EQ(options.beta_1, 0.9);
  EXPECT_EQ(options.beta_2, 0.999);
  EXPECT_EQ(options.epsilon, 1e-7);
  EXPECT_FALSE(options.amsgrad);
}

TEST(AdamTest, RefusesInvalidOptions) {
  EXPECT_THAT([] { make_adam({.beta_1 = 1}); },
              ThrowsMessage<InvalidArgumentError>(
                  HasSubstr("AdamOptions.beta_1 must lie in [0, 1), but is 1")));
  EXPECT_THAT([] { make_adam({.beta_2 = -0.1}); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("AdamOptions.beta_2")));
  EXPECT_THAT([] { make_adam({.epsilon = -1e-9}); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("AdamOptions.epsilon")));
}

}  // namespace
}  // namespace cohort::optim
