#include "cohort/optim/schedule.h"

#include <gmock/gmock.h>

#include "cohort/core/error.h"

namespace cohort::optim {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

TEST(ExponentialDecayTest, DecaysSmoothly) {
  const ExponentialDecay schedule(
      {.initial_learning_rate = 0.8, .decay_steps = 10, .decay_rate = 0.25});
  EXPECT_DOUBLE_EQ(schedule.at(0), 0.8);
  EXPECT_DOUBLE_EQ(schedule.at(5), 0.4);
  EXPECT_DOUBLE_EQ(schedule.at(10), 0.2);
  EXPECT_DOUBLE_EQ(schedule.at(20), 0.05);
}

TEST(ExponentialDecayTest, StaircaseHoldsBetweenSteps) {
  const ExponentialDecay schedule(
      {.initial_learning_rate = 0.8, .decay_steps = 10, .decay_rate = 0.25, .staircase = true});
  EXPECT_DOUBLE_EQ(schedule.at(9), 0.8);
  EXPECT_DOUBLE_EQ(schedule.at(10), 0.2);
  EXPECT_DOUBLE_EQ(schedule.at(19), 0.2);
}

TEST(ExponentialDecayTest, RefusesInvalidOptions) {
  EXPECT_THAT([] { ExponentialDecay({.initial_learning_rate = 1, .decay_rate = 0.5}); },
              ThrowsMessage<InvalidArgumentError>(
                  HasSubstr("ExponentialDecayOptions.decay_steps must be a finite number above 0, "
                            "but is 0")));
}

TEST(PiecewiseConstantDecayTest, BoundaryBelongsToTheIntervalItEnds) {
  const PiecewiseConstantDecay schedule({100, 110}, {1.0, 0.5, 0.1});
  EXPECT_EQ(schedule.at(0), 1.0);
  EXPECT_EQ(schedule.at(100), 1.0);
  EXPECT_EQ(schedule.at(101), 0.5);
  EXPECT_EQ(schedule.at(110), 0.5);
  EXPECT_EQ(schedule.at(111), 0.1);
}

TEST(PiecewiseConstantDecayTest, RefusesListsThatDoNotFit) {
  EXPECT_THAT(
      [] {
        PiecewiseConstantDecay({1, 2}, {1.0, 2.0});
      },
      ThrowsMessage<InvalidArgumentError>(HasSubstr("2 values and 2 boundaries")));
  EXPECT_THAT(
      [] {
        PiecewiseConstantDecay({2, 2}, {1.0, 2.0, 3.0});
      },
      ThrowsMessage<InvalidArgumentError>(HasSubstr("2 follows 2")));
}

TEST(CosineDecayTest, FallsToAlpha) {
  const CosineDecay schedule({.initial_learning_rate = 2, .decay_steps = 100, .alpha = 0.1});
  EXPECT_DOUBLE_EQ(schedule.at(0), 2);
  EXPECT_NEAR(schedule.at(50), 2 * (0.9 * 0.5 + 0.1), 1e-15);
  EXPECT_DOUBLE_EQ(schedule.at(100), 0.2);
  EXPECT_DOUBLE_EQ(schedule.at(1000), 0.2);
}

TEST(CosineDecayTest, WarmsUpFirst) {
  const CosineDecay schedule(
      {.initial_learning_rate = 0.5, .decay_steps = 10, .warmup_target = 1.5, .warmup_steps = 4});
  EXPECT_DOUBLE_EQ(schedule.at(0), 0.5);
  EXPECT_DOUBLE_EQ(schedule.at(2), 1.0);
  EXPECT_DOUBLE_EQ(schedule.at(4), 1.5);
  EXPECT_NEAR(schedule.at(9), 0.75, 1e-15);
  EXPECT_NEAR(schedule.at(14), 0, 1e-15);
}

TEST(CosineDecayTest, RefusesInvalidOptions) {
  EXPECT_THAT([] { CosineDecay({.initial_learning_rate = 1, .decay_steps = 1, .alpha = 2}); },
              ThrowsMessage<InvalidArgumentError>(HasSubstr("CosineDecayOptions.alpha")));
}

}  // namespace
}  // namespace cohort::optim
